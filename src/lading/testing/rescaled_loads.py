"""Rescaling of loads without state: tasks, partitions, shards and files change in number, and something fails.

A run has three phases: it begins at one size, goes on at another, and then at any; a process is killed in each. The
new size comes at a random step, one partition or shard after the other, so also between two commits, in the middle of
a batch, and while a process recovers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random

from lading.commit.protocols import Stager
from lading.errors import LadingError
from lading.model.batch import Limits
from lading.model.bill import Bill
from lading.plan.planner import Source
from lading.sources.files.packing import SplitSizing
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec, Format, Place
from lading.testing.folder import PLACE
from lading.testing.rescaled_sources import FolderTaskStager, KeyedFolder, Stream, TaskStager, Topic
from lading.testing.simulator import Summary
from lading.testing.source import Row
from lading.testing.verdict import CORRUPT, DUP, LOSS, PROGRESS_MISMATCH, REORDER, STUCK, Findings
from lading.testing.world import MAX_QUIET_STEPS, Setting, World

KINDS = ("kafka", "kinesis", "files")
SHAPES: dict[str, tuple[int, int] | None] = {"7 to 2": (7, 2), "2 to 7": (2, 7), "random": None}
CASES = tuple(product(KINDS, SHAPES))
MOST = 9
STEPS = 40


@dataclass(slots=True)
class LoadWorld(World):
    """An installation whose job loads a topic or a stream, with any number of tasks."""

    topic: Topic | Stream | None = None
    wanted: int = 2
    """Partitions or shards there are to be."""
    changed_open: int = 0
    """Partitions and shards that came or went while a process ran a batch."""
    changed_recovering: int = 0
    """The same while none ran, or one had not yet recovered."""

    def __post_init__(self) -> None:
        World.__post_init__(self)
        if self.topic is not None:
            self.source = self.topic
            self.source.produce(self.rng.randint(0, 10))
            self.store.created_at = self.source.open(self.setting.start)
            self.promises.created = self.store.created_at.partitions

    def make_stager(self) -> Stager:
        faults = self.setting.faults / 3
        return TaskStager(self.source, self.table.write_file, self.rng, tasks=lambda: self.tasks, faults=faults)

    def scale(self, size: int) -> None:
        """So many tasks from now on; shards and partitions will follow."""
        self.note_change(size != self.tasks)
        self.tasks = self.wanted = size

    def approach(self) -> None:
        """One shard or partition nearer to what is wanted."""
        if self.topic is not None:
            self.note_change(self.topic.approach(self.wanted))

    def note_change(self, is_one: bool) -> None:
        if self.actors and self.actors[0].is_open:
            self.changed_open += is_one
        else:
            self.changed_recovering += is_one

    def produce(self) -> None:
        """More rows come."""
        self.source.produce(self.rng.randint(1, 12))

    def sent(self) -> Sequence[Row]:
        """Rows that must be in the table."""
        return [row for shard in self.source.shards.values() for row in shard.rows if row.fate == "loaded"]

    def finish(self) -> Findings:
        findings = World.finish(self)
        check_loaded(self, self.sent(), findings)
        return findings


@dataclass(slots=True)
class FileLoadWorld(LoadWorld):
    """The same with files. What changes is how many come at once, and how many a batch takes."""

    folder: KeyedFolder = field(init=False)

    def __post_init__(self) -> None:
        LoadWorld.__post_init__(self)
        self.folder = KeyedFolder(self.rng, self.clock)
        self.store.created_at = self.make_source().open(self.setting.start)

    def make_source(self) -> Source:
        spec = FilesSpec(place=Place(scheme="file", bucket="", pattern=f"{PLACE}*"), format=Format.CSV, settle_s=0.0)
        sizing = SplitSizing(target_bytes=40, parallel=self.tasks, smallest_bytes=1, open_cost_bytes=1)
        return FilesSource(spec, store=self.folder, clock=self.clock, sizing=sizing)

    def make_stager(self) -> Stager:
        faults = self.setting.faults / 3
        return FolderTaskStager(self.folder, self.table.write_file, self.rng, tasks=lambda: self.tasks, faults=faults)

    def make_limits(self) -> Limits:
        return Limits(files=self.tasks)

    def produce(self) -> None:
        self.folder.put(self.wanted)

    def sent(self) -> Sequence[Row]:
        return self.folder.sent()

    def finish(self) -> Findings:
        """As for streams, whose verifier knows ranges of rows; here files are counted."""
        self.setting.faults = self.table.faults = 0.0
        self.table.drop_or_deliver_pending()
        self.actors.clear()
        findings = Findings()
        findings.found += self.causes.found
        findings.expect(self._drain(), STUCK, f"not done after {MAX_QUIET_STEPS} quiet steps")
        bills = check_loaded(self, self.sent(), findings)
        if bills:
            told, rows = bills[-1].totals, self.sent()
            counted = (told.source_files, told.rows.loaded)
            wanted = (len(self.folder.all), len(rows))
            findings.expect(counted == wanted, PROGRESS_MISMATCH, f"totals are {counted}, and {wanted} were sent")
        return findings


def check_loaded(world: LoadWorld, sent: Sequence[Row], findings: Findings) -> list[Bill]:
    """Every row is there once, and each key in order: by commit, then as files stand in it, then as rows stand there.

    Returns the bills, oldest first.
    """
    bills, head = list[Bill](), world.table.read_head_unchecked(world.job_id)
    while head is not None:
        bills.insert(0, world.bills.read_ever(world.job_id, head))
        head = bills[0].continues
    last, seen, wanted = dict[int, int](), Counter[Row](), set(sent)
    there = world.table.versions[-1].files
    for file in (file for bill in bills for file in bill.files):
        rows = world.table.file_rows(file.path) if file.path in there else None
        findings.expect(rows is not None and len(rows) == file.rows, CORRUPT, f"{file.path} is not what its bill says")
        for row in rows or ():
            told = f"number {row.number} of key {row.key}"
            seen[row] += 1
            findings.expect(row in wanted, CORRUPT, f"{told} was never sent to be loaded")
            findings.expect(seen[row] == 1, DUP, f"{told} is there {seen[row]} times")
            before = last.get(row.key, -1)
            findings.expect(row.number > before or seen[row] > 1, REORDER, f"{told} comes after {before}")
            last[row.key] = max(before, row.number)
    lost = len(wanted - seen.keys())
    findings.expect(not lost, LOSS, f"{lost} of {len(wanted)} rows are not there")
    return bills


@dataclass(slots=True)
class RescaledLoads(Summary):
    """What many runs came to."""

    cases: Counter[str] = field(default_factory=Counter)
    """Runs of each source and shape."""
    rows: int = 0
    changed_open: int = 0
    changed_recovering: int = 0

    @property
    def more(self) -> dict[str, int]:
        changes = {"changes_while_running": self.changed_open, "changes_while_recovering": self.changed_recovering}
        return {"rows": self.rows, **changes, **self.cases}


def rescale_loads(seeds: Iterable[int], *, stop_at_first: bool = False) -> RescaledLoads:
    """A run for each seed; sources and shapes take turns."""
    summary = RescaledLoads()
    for seed in seeds:
        world, findings = run_load(seed)
        summary.add(seed, world, findings)
        summary.cases[" ".join(CASES[seed % len(CASES)])] += 1
        summary.rows += len(world.sent())
        summary.changed_open += world.changed_open
        summary.changed_recovering += world.changed_recovering
        if findings.found and stop_at_first:
            break
    return summary


def run_load(seed: int) -> tuple[LoadWorld, Findings]:
    """One run, from its seed alone."""
    kind, shape = CASES[seed % len(CASES)]
    rng = Random(seed)
    fixed = SHAPES[shape] or (rng.randint(1, MOST), rng.randint(1, MOST))
    tasks = (*fixed, rng.randint(1, MOST))
    # Partitions of a topic never get fewer: they grow while the tasks may shrink.
    partitions = tasks if kind != "kafka" else tuple(sorted(tasks))
    world = _make_world(kind, rng, partitions[0])
    world.tasks = tasks[0]
    findings = Findings()
    try:
        for phase in range(len(tasks)):
            _run_phase(world, tasks[phase], partitions[phase])
        findings.found += world.finish().found
    except LadingError as error:
        findings.add(CORRUPT, f"what must be there could not be read: {error}")
    return world, findings


def _make_world(kind: str, rng: Random, partitions: int) -> LoadWorld:
    faults = rng.choice((0.05, 0.2))
    if kind == "files":
        return FileLoadWorld(rng, Setting(start="", faults=faults), wanted=partitions)
    topic = Topic(rng, partitions) if kind == "kafka" else Stream(rng, partitions)
    return LoadWorld(rng, Setting(start="TRIM_HORIZON", faults=faults), topic=topic, wanted=partitions)


def _run_phase(world: LoadWorld, tasks: int, partitions: int) -> None:
    """Forty steps. Before one of them the process is killed, before another one the size changes."""
    rng = world.rng
    killed_at, scaled_at = rng.randrange(STEPS), rng.randrange(STEPS // 2)
    if rng.random() < 0.3:
        scaled_at = killed_at  # The next process finds another size than the one that died.
    for step in range(STEPS):
        if step % 5 == 0:
            world.produce()
        if step == killed_at and world.actors:
            world.kill(world.actors[0])
        if step == scaled_at:
            world.scale(tasks)
            world.wanted = partitions
        if step >= scaled_at and rng.random() < 0.5:
            world.approach()
        if rng.random() < 0.1:
            world.table.deliver_pending()
        if not world.actors:
            world.spawn()
        world.step(world.actors[0])
    world.scale(tasks)
    world.wanted = partitions
    for _ in range(STEPS):
        world.approach()
