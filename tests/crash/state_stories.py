"""Stories of jobs with state that are killed: what they were given, what they should have written, and what is wrong.

A story is two jobs over one inbox: one loads the first row of each key, the other counts by the minute. Or it is two
jobs over two streams of files: both join them, and one also writes what matches nothing. Several stories may share a
home, and then a process: a kill ends all of them, each where it is.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Protocol

import duckdb
import polars as pl
from pyspark.sql import SparkSession

from lading.service.facade import Lading
from lading.tables.registry import kind_of
from tests.tables.optional import skip_without

ROWS = 60
"""Of each file."""
ENDS = 16
"""So many keys fall into all partitions of a stream."""
JOBS = """CREATE DATABASE {name}; USE {name};
CREATE TABLE firsts (id BIGINT, at DATETIME, n BIGINT) USING {form};
CREATE TABLE counts (minute DATETIME, city STRING, many BIGINT, total BIGINT) USING {form};
CREATE JOB {name}_firsts PROPERTIES({limits}"watermark.column"="at", "watermark.delay"="1 minute",
"dedup.keys"="id", "dedup.horizon"="1 day") ON STREAMING DO INSERT INTO firsts SELECT id, at, n FROM {source};
CREATE JOB {name}_counts PROPERTIES({limits}"watermark.column"="at", "watermark.delay"="1 minute")
ON STREAMING DO INSERT INTO counts SELECT window.start, city, count(*), sum(n) FROM {source}
GROUP BY window(at, '1 minute'), city"""
JOINS = """CREATE DATABASE {name}; USE {name};
CREATE TABLE pairs (left_n BIGINT, right_n BIGINT, id BIGINT, at DATETIME, city STRING) USING {form};
CREATE TABLE lefts (left_n BIGINT, right_n BIGINT, id BIGINT, at DATETIME, city STRING) USING {form};
CREATE JOB {name}_pairs {properties} INSERT INTO pairs SELECT a.n, b.n, a.id, a.at, b.city FROM {left} AS a
JOIN {right} AS b ON {condition};
CREATE JOB {name}_lefts {properties} INSERT INTO lefts SELECT a.n, b.n, a.id, a.at, b.city FROM {left} AS a
LEFT JOIN {right} AS b ON {condition}"""
JOIN_PROPERTIES = (
    'PROPERTIES("s3.max_batch_files"="4", "watermark.column"="a.at, b.at", "watermark.delay"="1 minute", '
    '"watermark.idle_timeout"="0") ON STREAMING DO'
)
"""A stream that has nothing to read holds the other, however slow the machine is: no row is late."""
CONDITION = "a.id = b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 2 MINUTES AND a.city <> b.city"
RUN = (
    "import sys; from lading import connect; from lading.failpoints import arm_from_text\n"
    "arm_from_text(sys.argv[3])\n"
    "with connect(sys.argv[1], spark={'spark.master': f'local[{sys.argv[2]}]'}) as lading: lading.run()"
)
ALL_PAIRS = (
    "SELECT a.n, b.n, a.id, a.happened, b.city FROM a {} JOIN b ON a.id = b.id AND a.city <> b.city "
    "AND epoch(b.happened) - epoch(a.happened) BETWEEN 0 AND 120 WHERE a.happened < TIMESTAMP '2026-01-02'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What stories came to."""

    stories: int = 0
    kills: int = 0
    commits: int = 0
    rows: int = 0
    results: int = 0
    loss: int = 0
    dup: int = 0
    reorder: int = 0
    corrupt: int = 0

    def __add__(self, other: Found) -> Found:
        return Found(**{part.name: getattr(self, part.name) + getattr(other, part.name) for part in fields(Found)})

    @property
    def is_clean(self) -> bool:
        return not (self.loss or self.dup or self.reorder or self.corrupt)


Event = tuple[int, str, str, int]


class Inbox(Protocol):
    """Where rows are put for the jobs of a story."""

    source: str
    """What comes after FROM."""
    limits: str
    """Properties that make batches small."""

    def put(self, rows: Sequence[Event]) -> None: ...


class Folder:
    """An inbox of files."""

    limits = '"s3.max_batch_files"="2", '

    def __init__(self, path: Path) -> None:
        self._path, self._files = path, 0
        self._path.mkdir()
        self.source = f'FILE("uri"="{path}/*.csv", "format"="csv_with_names", "column_separator"=",")'

    def put(self, rows: Sequence[Event]) -> None:
        lines = ["id,at,city,n", *(",".join(map(str, row)) for row in rows)]
        path = self._path / f"{self._files:04}.csv"
        # It comes whole, also where jobs run meanwhile.
        path.with_suffix(".new").write_text("\n".join(lines) + "\n")
        path.with_suffix(".new").rename(path)
        self._files += 1


class Story:
    """What was put in, and how it is compared with what came out."""

    expected: ClassVar[Mapping[str, tuple[int, str]]]
    """By table: how many columns are its key, and what DuckDB computes from all rows."""

    def __init__(self, name: str, form: str, rng: Random) -> None:
        skip_without(kind_of(form))
        self.name, self._form, self._rng = name, form, rng
        self._rows: dict[str, list[Event]] = {}
        """By the name that DuckDB knows them under."""

    @property
    def statements(self) -> str:
        raise NotImplementedError

    def put(self, files: int) -> None:
        """Rows that are at most half a minute behind the newest."""
        raise NotImplementedError

    def end(self) -> None:
        """Rows that close everything before them."""
        raise NotImplementedError

    def _event(self, number: int, key: int) -> Event:
        second = max(0, number - self._rng.randrange(30))
        at = f"2026-01-01 {12 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        return key, at, self._rng.choice(("essen", "bonn", "ulm")), number

    def find(self, lading: Lading) -> Found:
        """Compare what the jobs wrote with what DuckDB computes from all that was put in."""
        found = Found(stories=1, rows=sum(map(len, self._rows.values())))
        with duckdb.connect() as other:
            for name, rows in self._rows.items():
                other.register(name, _frame(rows).to_arrow())
            for name, (keys, query) in self.expected.items():
                table = lading.catalog.open_table(self.name, name)
                written = [tuple(_plain(value) for value in row.values()) for row in table.scan().to_pylist()]
                found += compare(written, other.sql(query).fetchall(), keys, is_first=name == "firsts")
                job = lading.any_job(f"{self.name}_{name}")
                found += Found(
                    commits=lading.bills(job, 1)[0].seq + 1,
                    corrupt=int(not lading.verify(f"{self.name}_{name}").is_clean),
                )
        return found


class CountStory(Story):
    """The first row of each key, and counts by the minute. Every third row was sent before."""

    expected: ClassVar = {
        "firsts": (1, "SELECT id, arg_min(happened, n), min(n) FROM rows GROUP BY id"),
        "counts": (
            2,
            "SELECT time_bucket(INTERVAL 1 MINUTE, happened), city, count(*), sum(n) FROM rows "
            "WHERE happened < TIMESTAMP '2026-01-02' GROUP BY ALL",
        ),
    }

    def __init__(self, name: str, form: str, rng: Random, inbox: Inbox) -> None:
        super().__init__(name, form, rng)
        self._inbox, self._rows = inbox, {"rows": []}

    @property
    def statements(self) -> str:
        return JOBS.format(name=self.name, form=self._form, source=self._inbox.source, limits=self._inbox.limits)

    def put(self, files: int) -> None:
        known = self._rows["rows"]
        for _ in range(files):
            rows: list[Event] = []
            for _ in range(ROWS):
                number = len(known) + len(rows)
                is_again = known and self._rng.random() < 0.33
                rows.append(self._event(number, self._rng.choice(known)[0] if is_again else number))
            self._write(rows)

    def end(self) -> None:
        """For each partition."""
        self._write([(10**6 + number, "2026-01-02 00:00:00", "end", 10**6 + number) for number in range(ENDS)])

    def _write(self, rows: list[Event]) -> None:
        self._inbox.put(rows)
        self._rows["rows"] += rows


class JoinStory(Story):
    """Two streams of files, of which now one is ahead and now the other. A third of the keys has only one of them."""

    expected: ClassVar = {"pairs": (2, ALL_PAIRS.format("")), "lefts": (2, ALL_PAIRS.format("LEFT"))}
    keys: ClassVar = {"a": range(60), "b": range(20, 80)}

    def __init__(self, name: str, form: str, rng: Random, path: Path) -> None:
        super().__init__(name, form, rng)
        self._rows = {side: [] for side in self.keys}
        self._inboxes = {side: Folder(path / f"{name}.{side}") for side in self.keys}

    @property
    def statements(self) -> str:
        left, right = (inbox.source for inbox in self._inboxes.values())
        given = {"properties": JOIN_PROPERTIES, "condition": CONDITION}
        return JOINS.format(name=self.name, form=self._form, left=left, right=right, **given)

    def put(self, files: int) -> None:
        for side, number in (("a", files), ("b", self._rng.randint(1, 2 * files - 1))):
            for _ in range(number):
                first, keys = len(self._rows[side]), self.keys[side]
                self._write(side, [self._event(first + n, self._rng.choice(keys)) for n in range(ROWS)])

    def end(self) -> None:
        for side in self.keys:
            self._write(side, [(10**6, "2026-01-02 00:00:00", "end", 10**6)])

    def _write(self, side: str, rows: list[Event]) -> None:
        self._inboxes[side].put(rows)
        self._rows[side] += rows


class Stories:
    """A home with stories."""

    def __init__(
        self,
        path: Path,
        counts: Mapping[str, str],
        rng: Random,
        inbox: Inbox | None = None,
        *,
        joins: Mapping[str, str] | None = None,
    ) -> None:
        self.home, self.kills = path / "home", 0
        self.stories: list[Story] = [
            *(CountStory(name, form, rng, inbox or Folder(path / f"{name}.in")) for name, form in counts.items()),
            *(JoinStory(name, form, rng, path) for name, form in (joins or {}).items()),
        ]
        with Lading(self.home) as lading:
            for story in self.stories:
                lading.sql(story.statements)

    def put(self, files: int) -> None:
        for story in self.stories:
            story.put(files)

    def run(self, tasks: int, failpoint: str = "") -> bool:
        """All jobs, in a process of their own with so many tasks at once. Whether it was killed."""
        command = [sys.executable, "-c", RUN, str(self.home), str(tasks), failpoint]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
        assert ended.returncode in (0, -signal.SIGKILL), ended.stdout + ended.stderr
        self.kills += ended.returncode != 0
        return ended.returncode != 0

    def end(self, tasks: int, spark: SparkSession | None = None) -> Found:
        """Load what is left, without a kill, and look. `spark`: in this process, with as many tasks as that has."""
        for story in self.stories:
            story.end()
        if spark is None:
            assert not self.run(tasks)
        else:
            with Lading(self.home, session=spark) as lading:
                lading.run()
        found = Found(kills=self.kills)
        with Lading(self.home) as lading:
            for story in self.stories:
                found += story.find(lading)
        print(found)
        return found


def compare(
    written: Sequence[tuple[Any, ...]], expected: Sequence[tuple[Any, ...]], keys: int, *, is_first: bool
) -> Found:
    """By key: what is missing, there twice, another row of the same key than the first, or not what it should be."""
    there, right = Counter(row[:keys] for row in written), {row[:keys]: row for row in expected}
    other = sum(row[:keys] not in right or right[row[:keys]] != row for row in written)
    return Found(
        results=len(written),
        loss=len(right.keys() - there.keys()),
        dup=sum(number - 1 for number in there.values()),
        reorder=other if is_first else 0,
        corrupt=0 if is_first else other,
    )


def _frame(rows: Sequence[Event]) -> pl.DataFrame:
    columns = {name: [row[place] for row in rows] for place, name in enumerate(("id", "happened", "city", "n"))}
    return pl.DataFrame(columns).with_columns(pl.col("happened").str.to_datetime())


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value
