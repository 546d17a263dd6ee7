"""Stories of loads that change their size and are killed: what was sent, and what is wrong with what came out.

A story is one job from one source into one table. Several stories share a home, and so a process: a kill ends all of
them, each where it is. Each key counts from 0, so that what is missing, doubled or out of order can be told apart.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random

from lading.service.facade import Lading
from lading.tables.registry import kind_of
from lading.testing.kinesis.generator import Generator
from lading.testing.kinesis.reshard import Resharder
from lading.testing.kinesis.server import KinesisServer
from lading.testing.stream_check import lineage, rows_in_load_order
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_generator import KafkaGenerator
from tests.support.other_readers import read_elsewhere
from tests.tables.optional import skip_without

ROWS = 160
"""That a stream gets at one time."""
RUN = (
    "import sys; from lading import connect; from lading.failpoints import arm_from_text\n"
    "arm_from_text(sys.argv[3])\n"
    # A setting for tasks: what is mapped in Arrow would do without Spark.
    "spark = {'spark.master': f'local[{sys.argv[2]}]', 'spark.python.worker.reuse': 'true'}\n"
    "with connect(sys.argv[1], spark=spark) as lading: lading.run()"
)
SOURCES = ("kafka", "kinesis", "files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What stories came to."""

    stories: int = 0
    kills: int = 0
    commits: int = 0
    rescales: int = 0
    """Partitions and shards that came or went."""
    rows: int = 0
    loss: int = 0
    dup: int = 0
    reorder: int = 0
    corrupt: int = 0

    def __add__(self, other: Found) -> Found:
        return Found(**{part.name: getattr(self, part.name) + getattr(other, part.name) for part in fields(Found)})

    @property
    def is_clean(self) -> bool:
        return not (self.loss or self.dup or self.reorder or self.corrupt)


class Sender:
    """A source that is written, and that can have another size."""

    job: str
    """Properties of the job that make its batches small."""
    source: str
    """What comes after FROM."""
    columns: str = "k, n"
    stream: str
    """The name of the topic or stream, or the pattern of the files."""
    sent: Mapping[str, int]
    """Per key how many rows: 0, 1, … sent - 1."""

    def resize(self, size: int) -> int:
        """Have so many partitions, shards or files from now on. How many came or went."""
        raise NotImplementedError

    def put(self, rows: int = ROWS) -> None:
        """About so many rows."""
        raise NotImplementedError


class KafkaSender(Sender):
    """A topic. Its partitions never get fewer."""

    job = '"max_batch_rows"="60"'

    def __init__(self, broker: KafkaBroker, size: int) -> None:
        self._generator = KafkaGenerator(broker, f"t{uuid.uuid4().hex[:8]}", partitions=size, keys_each=3)
        self._size, self.sent, self.stream = size, self._generator.sent, self._generator.topic
        self.source = _call(
            "KAFKA",
            {
                "kafka_broker_list": broker.bootstrap,
                "kafka_topic": self._generator.topic,
                "property.kafka_default_offsets": "OFFSET_BEGINNING",
                "format": "json",
            },
        )

    def resize(self, size: int) -> int:
        grown = max(0, size - self._size)
        if grown:
            self._generator.grow(size)
            self._size, self.sent = size, self._generator.sent
        return grown

    def put(self, rows: int = ROWS) -> None:
        self._generator.put(rows)


class KinesisSender(Sender):
    """A stream."""

    job = '"max_batch_rows"="60"'
    columns = "`key`, n"

    def __init__(self, server: KinesisServer, size: int, rng: Random) -> None:
        stream = f"s{uuid.uuid4().hex[:8]}"
        client, seed = server.create_stream(stream, size), rng.getrandbits(32)
        self._generator = Generator(client, stream, seed=seed)
        self._resharder = Resharder(client, stream, seed=seed)
        self.sent, self.stream = self._generator.sent, stream
        self.source = _call(
            "KINESIS",
            {
                "aws.region": server.region,
                "kinesis_stream": stream,
                "aws.endpoint": server.endpoint,
                "aws.access_key": server.access_key,
                "aws.secret_key": server.secret_key,
                "property.kinesis_default_pos": "TRIM_HORIZON",
                "format": "json",
            },
        )

    def resize(self, size: int) -> int:
        return self._resharder.reach(size)

    def put(self, rows: int = ROWS) -> None:
        self._generator.put(rows)
        assert not self._generator.maybe_twice


class FilesSender(Sender):
    """A folder; rows of each key are in many files."""

    job = '"s3.max_batch_files"="3"'
    header = "k,n,place,number"

    def __init__(self, folder: Path, size: int, rng: Random, keys: int = 20) -> None:
        folder.mkdir(parents=True)
        self._folder, self._size, self._rng = folder, size, rng
        self._files = 0
        self.sent = self._sent = {f"key-{number}": 0 for number in range(keys)}
        self.stream = f"{folder}/*.csv"
        self.source = f'FILE("uri"="{self.stream}", "format"="csv_with_names", "column_separator"=",")'

    def resize(self, size: int) -> int:
        changed, self._size = abs(size - self._size), size
        return changed

    def put(self, rows: int = ROWS) -> None:
        """As many files as the size is. They come whole."""
        for _ in range(self._size):
            path = self._folder / f"{self._files:06}.csv"
            lines = [
                f"{self._row()},{path.name},{line}" for line in range(self._rng.randint(1, 2 * rows // self._size))
            ]
            path.with_suffix(".new").write_text("\n".join([self.header, *lines]) + "\n")
            path.with_suffix(".new").rename(path)
            self._files += 1

    def _row(self) -> str:
        key = self._rng.choice(list(self._sent))
        self._sent[key] += 1
        return f"{key},{self._sent[key] - 1}"


@dataclass(slots=True)
class Story:
    """One load."""

    name: str
    form: str
    sender: Sender

    @property
    def statements(self) -> str:
        return (
            f"CREATE DATABASE {self.name}; USE {self.name}; CREATE TABLE t (k STRING, n BIGINT) USING {self.form};"
            f"CREATE JOB {self.name} PROPERTIES({self.sender.job}) ON STREAMING DO "
            f"INSERT INTO t SELECT {self.sender.columns} FROM {self.sender.source}"
        )

    def find(self, lading: Lading, home: Path) -> Found:
        """What another reader finds in the table; the order of each key comes from commits, files and rows."""
        table, record = lading.catalog.open_table(self.name, "t"), lading.any_job(self.name)
        folder = home / "warehouse" / self.name / "t"
        read = read_elsewhere(self.form, folder).to_pydict()
        ordered = list(rows_in_load_order(table, record.job_id))
        found = judge(list(zip(read["k"], read["n"], strict=True)), ordered, self.sender.sent)
        is_clean = lading.verify(self.name).is_clean
        return found + Found(stories=1, commits=len(lineage(table, record.job_id)), corrupt=int(not is_clean))


def judge(there: Sequence[tuple[str, int]], ordered: Sequence[tuple[str, int]], sent: Mapping[str, int]) -> Found:
    """Rows that another reader found, and the rows of all commits in order, against what was sent."""
    counts, wanted = Counter(there), {(key, n) for key, count in sent.items() for n in range(count)}
    newest, reorder = dict[str, int](), 0
    for key, n in ordered:
        reorder += n < newest.get(key, -1)
        newest[key] = max(n, newest.get(key, -1))
    strange = sum(count for row, count in counts.items() if row not in wanted)
    return Found(
        rows=len(there),
        loss=len(wanted - counts.keys()),
        dup=sum(count - 1 for row, count in counts.items() if row in wanted),
        reorder=reorder,
        corrupt=strange + int(Counter(ordered) != counts),
    )


class Stories:
    """A home with stories."""

    def __init__(self, path: Path, stories: Sequence[Story]) -> None:
        self.home, self.stories, self.kills, self.rescales = path / "home", stories, 0, 0
        for story in stories:
            skip_without(kind_of(story.form))
        with Lading(self.home) as lading:
            for story in stories:
                lading.sql(story.statements)

    def put(self, rows: int = ROWS) -> None:
        for story in self.stories:
            story.sender.put(rows)

    def resize(self, size: int) -> None:
        """All sources."""
        self.rescales += sum(story.sender.resize(size) for story in self.stories)

    def run(self, tasks: int, failpoint: str = "", *, size: int | None = None) -> bool:
        """All jobs in a process of their own; meanwhile rows come and sources get another size. Whether it died."""
        command = [sys.executable, "-c", RUN, str(self.home), str(tasks), failpoint]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            if size is not None:
                self.resize(size)
                self.put()
            said, _ = process.communicate(timeout=1800)
        assert process.returncode in (0, -signal.SIGKILL), said
        self.kills += process.returncode != 0
        return process.returncode != 0

    def end(self, tasks: int) -> Found:
        """Load what is left, without a kill, and look."""
        assert not self.run(tasks)
        found = Found(kills=self.kills, rescales=self.rescales)
        with Lading(self.home) as lading:
            for story in self.stories:
                found += story.find(lading, self.home)
        print(found)
        return found


def _call(name: str, given: Mapping[str, str]) -> str:
    return f"{name}(" + ", ".join(f'"{key}"="{value}"' for key, value in given.items()) + ")"
