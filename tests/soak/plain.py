"""The form without Spark: hundreds of kills a minute.

Each life of a job is a process with the real source, writer, coordinator and table, that is ended by SIGKILL: at a step
that a seed chooses, or at any moment. Meanwhile rows come, shards and partitions come and go, brokers die; between two
lives operators move jobs back, and other engines look after the tables.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lading.clock import SystemClock
from lading.commit.steps import STEP_NAMES
from lading.tables.registry import kind_of
from lading.testing.kinesis.server import KinesisServer, serve_kinesis
from tests.crash.load_stories import FilesSender, KafkaSender, KinesisSender, Sender
from tests.soak.counts import Counts
from tests.soak.journal import Journal
from tests.soak.lakes import FolderLake
from tests.soak.maintenance import maintain
from tests.soak.plain_worker import FENCED, Life, Lives
from tests.support.kafka_broker import KafkaBroker, serve_kafka
from tests.support.stream_worker import JOB, MIDDLE, StreamJob

PLACES = (*(name for name in STEP_NAMES if not name.startswith(("merge", "settle.before", "edit"))), MIDDLE, MIDDLE)
LANES = (
    ("files", "delta"),
    ("kafka", "iceberg"),
    ("kinesis", "delta"),
    ("files", "iceberg"),
    ("kafka", "delta"),
    ("kinesis", "paimon"),
    ("files", "paimon"),
)
QUIET_EVERY = 12
"""Lives of a job before it may load in peace, the journal is read, and others look after the table."""
BROKER_EVERY = 150
"""Lives of jobs over Kafka before the broker dies as well."""
OVERTAKEN = 0.05
"""Of all lives."""
STARTS = {"kafka": '{"default": "OFFSET_BEGINNING"}', "kinesis": "TRIM_HORIZON", "files": ""}


@dataclass(slots=True)
class Lane:
    """One job."""

    job: StreamJob
    sender: Sender
    journal: Journal
    counts: Counts
    lives: int = 0

    @property
    def folder(self) -> Path:
        return Path(self.job.home) / "warehouse" / "events"


class Soak:
    """Jobs that are killed in turn by one thread."""

    def __init__(
        self, lanes: Sequence[Lane], lives: tuple[Lives, Lives], rng: Random, broker: KafkaBroker | None
    ) -> None:
        self._lanes, self._rng, self._broker = lanes, rng, broker
        self._lives, self._others = lives
        self._pause = threading.Event()

    def run(self, until_s: float) -> None:
        """Until then, and then to a quiet end."""
        clock = SystemClock()
        while clock.monotonic_s() < until_s:
            for lane in self._lanes:
                # Who is paused may hold the lock of the SQLite file that is the catalog, and nobody can take over then.
                can_pause = lane.job.form != "iceberg"
                (self.overtake if can_pause and self._rng.random() < OVERTAKEN else self.live)(lane)
                if lane.lives % QUIET_EVERY == 0:
                    self.rest(lane)
        for lane in self._lanes:
            self.rest(lane)
            lane.journal.end(lane.sender.sent)

    def live(self, lane: Lane) -> None:
        """One life, which is likely to be cut off."""
        rng, counts = self._rng, lane.counts
        lane.lives += 1
        counts.done["lives"] += 1
        moves = self._moves(lane) if lane.job.source != "files" and rng.random() < 0.05 else {}
        is_timed = rng.random() < 0.4
        place = rng.choice(("edit.before", "edit.after", *PLACES) if moves else PLACES)
        reason = f"soak-{counts.done['lives']}"
        if moves:
            lane.journal.asked[reason] = moves
            counts.done["edits asked for"] += 1
        failpoints = "" if is_timed else f"{place}=kill:{rng.randint(1, 3)}"
        size = rng.choice((20, 60, 200, 1000))
        life = Life(failpoints=failpoints, changes=moves, reason=reason, rows=size, files=rng.randint(1, 6))
        self._lives.start(lane.job, life)
        is_left_alone = self._happen(lane)
        if is_timed:
            self._pause.wait(rng.uniform(0, 0.15))
        code = self._lives.kill(lane.job) if is_timed else self._lives.finish(lane.job)
        if code == -signal.SIGKILL:
            counts.kill("loaders at any moment" if is_timed else "loaders at a step")
        elif code:
            counts.done["lives that ended with an error"] += 1
            counts.expect(not is_left_alone, "STUCK", f"{lane.job.home} ended with an error: see above")

    def overtake(self, lane: Lane) -> None:
        """A life that is paused, so that another one takes over, and then goes on as if nothing had been."""
        rng, counts = self._rng, lane.counts
        lane.lives += 1
        counts.done["lives"] += 2
        self._others.start(lane.job, Life(rows=rng.choice((20, 60, 200))))
        lane.sender.put(rng.randint(5, 60))
        self._pause.wait(rng.uniform(0, 0.4))
        self._others.signal(signal.SIGSTOP)
        lane.sender.put(rng.randint(5, 60))
        self._lives.start(lane.job, Life(rows=rng.choice((20, 60, 200))))
        code = self._lives.finish(lane.job)
        counts.expect(code == 0, "STUCK", f"{lane.job.home} could not take over (status {code}): see above")
        self._others.signal(signal.SIGCONT)
        code = self._others.finish(lane.job)
        counts.done["lives that were overtaken"] += 1
        counts.done["lives that were fenced"] += code == FENCED
        # Where it had not read the head yet, it is the one that takes over now.
        told = f"{lane.job.home} was overtaken and ended with status {code}: see above"
        counts.expect(code in (0, FENCED), "STUCK", told)

    def _happen(self, lane: Lane) -> bool:
        """While it lives. Whether it has no reason to end with an error."""
        rng = self._rng
        lane.sender.put(rng.randint(5, 60))
        if rng.random() < 0.15:
            lane.counts.done["partitions, shards and files a time that came or went"] += lane.sender.resize(
                rng.randint(1, 8)
            )
            lane.sender.put(10)
        if self._broker is None or lane.job.source != "kafka" or lane.lives % BROKER_EVERY:
            return True
        self._broker.kill()
        lane.counts.kill("brokers")
        self._broker.start()
        return False

    def _moves(self, lane: Lane) -> dict[str, str]:
        """One partition or shard, back to a row before its position."""
        lane.journal.read_on(lane.job.open_table())
        return lane.journal.way_back(self._rng)

    def rest(self, lane: Lane) -> None:
        """A life that nobody ends. Then everything is read, and others may look after the table."""
        self._lives.start(lane.job, Life())
        code = self._lives.finish(lane.job)
        lane.counts.expect(code == 0, "STUCK", f"{lane.job.home} cannot load what is there (status {code}): see above")
        lane.journal.read_on(lane.job.open_table())
        if self._rng.random() < 0.5:
            is_all = self._rng.random() < 0.5
            maintain(lane.job.form, Path(lane.job.home), "shop", lane.folder, removes_orphans=is_all)
            lane.counts.done["maintenances by others"] += 1
            lane.counts.done["of these with orphans removed"] += is_all


def soak_plain(path: Path, seed: int, hours: float, sources: Collection[str]) -> dict[str, Counts]:
    """By job, what it came to."""
    lanes = [lane for lane in LANES if lane[0] in sources and not kind_of(lane[1]).missing()]
    counts = {f"{source} to {form}": Counts() for source, form in lanes}
    until_s = SystemClock().monotonic_s() + hours * 3600
    failures: list[BaseException] = []

    def run(soak: Soak) -> None:
        try:
            soak.run(until_s)
        except BaseException as error:  # noqa: BLE001 - the end of a thread; it is raised below
            failures.append(error)

    with ExitStack() as servers:
        broker = servers.enter_context(serve_kafka()) if "kafka" in sources else None
        kinesis = servers.enter_context(serve_kinesis()) if "kinesis" in sources else None
        made = [
            _lane(path, source, form, counts[f"{source} to {form}"], Random(f"{seed} {number}"), broker, kinesis)
            for number, (source, form) in enumerate(lanes)
        ]
        # Jobs over Kafka share a thread: when one of them has the broker killed, the other does not run.
        shares = [
            [lane for lane in made if lane.job.source == "kafka" or lane.job.form == "paimon"],
            [lane for lane in made if lane.job.source != "kafka" and lane.job.form != "paimon"],
        ]
        with ExitStack() as stack:
            soaks = [
                Soak(share, _two(stack), Random(f"{seed} soak {number}"), broker) for number, share in enumerate(shares)
            ]
            threads = [threading.Thread(target=run, args=(soak,)) for soak in soaks]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    if failures:
        raise failures[0]
    return counts


def _two(stack: ExitStack) -> tuple[Lives, Lives]:
    return stack.enter_context(Lives()), stack.enter_context(Lives())


def _lane(
    path: Path,
    source: str,
    form: str,
    counts: Counts,
    rng: Random,
    broker: KafkaBroker | None,
    kinesis: KinesisServer | None,
) -> Lane:
    home = path / f"{source}-{form}"
    home.mkdir(parents=True)
    sender: Sender
    if source == "kafka" and broker is not None:
        sender, address = KafkaSender(broker, 2), broker.bootstrap
    elif source == "kinesis" and kinesis is not None:
        sender, address = KinesisSender(kinesis, 2, rng), kinesis.endpoint
    else:
        sender, address = FilesSender(home / "in", 2, rng), ""
    job = StreamJob(
        home=str(home), form=form, source=source, address=address, stream=sender.stream, start=STARTS[source]
    )
    job.create_table()
    lake = FolderLake(form, home / "warehouse" / "events")
    return Lane(job, sender, Journal(JOB, lake, counts, by_place=source != "files"), counts)
