"""An installation in memory that loads files with bad rows, and files that cannot be read.

Operators leave files out, have them loaded after all, move the position, accept rollbacks, and have bad rows taken up
again, in any order, while processes die. What must hold is told from the bills and the files that they name, see
`aside_check`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from lading.commit.protocols import Stager
from lading.commit.replays import QUARANTINE, SourceOrder
from lading.commit.steps import Steps
from lading.errors import FILE_UNREADABLE, JobStateError, LadingError, SourceError, SqlError
from lading.model.batch import BatchPlan, Limits, Report, Split
from lading.model.bill import Bill
from lading.model.positions import Positions
from lading.model.tally import RowCounts
from lading.plan.planner import Source
from lading.sources.files.aside import LOAD, SKIP, FileWord, moved_aside, repeats_nothing
from lading.sources.files.payload import FilePart, parse_payload
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec, Format, Place
from lading.sources.files.window import FileStatus, read_window
from lading.storage.store import ObjectInfo
from lading.testing.aside_check import WORD, BadFiles, check_lineage
from lading.testing.files_world import SETTLE_S, FilesWorld
from lading.testing.folder import PLACE, Folder, FolderStager, SimulatedFile
from lading.testing.source import Row
from lading.testing.verdict import LOSS, Findings
from lading.testing.verifier import read_lineage
from lading.testing.world import JOB_ID, Actor, Setting

URI = f"{PLACE}*"
_KINDS = 4
"""Bad rows are of so many kinds; a change of the definition makes those of one kind good."""


def fates(file: SimulatedFile) -> list[Row]:
    """The rows of a file: the same whenever it is read."""
    numbers = range(file.written)
    return [Row(file.number, n, "error" if (file.number * 7 + n * 5) % 3 == 0 else "loaded") for n in numbers]


def kind_of(row: Row) -> int:
    """What is wrong with a bad row."""
    return (row.key + row.number) % _KINDS


@dataclass(slots=True)
class MessyFolder:
    """What becomes of files beside being written: some come broken, and are repaired."""

    folder: Folder
    rng: Random
    broken: set[str] = field(default_factory=set)

    def arrive(self) -> None:
        """A damaged file comes."""
        self.folder.appear()
        if self.folder.all[-1].is_whole:
            self.broken.add(self.folder.all[-1].key)

    def repair(self) -> None:
        """A damaged file comes again, whole, or only looks as if it did."""
        if able := sorted(self.broken & self.folder.files.keys()):
            file = self.folder.files[self.rng.choice(able)]
            file.version += 1
            file.modified = self.folder.now()
            if self.rng.random() < 0.7:
                self.broken.discard(file.key)


class AsideStager(FolderStager):
    """Reads files with bad rows, puts the only file of a batch aside when it cannot be read, and reads quarantine."""

    messy: MessyFolder
    quarantine: BadFiles
    heals: set[int]

    def _attempt(self, split: Split) -> Report:
        return self._replayed(split) if split.partition == QUARANTINE else self._read(split)

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        keys = [part.key for split in plan.splits if split.partition != QUARANTINE for part in _parts(split)]
        if len(keys) > 1 and self.messy.broken & set(keys):
            msg = "A file cannot be read"
            raise SourceError(msg, code=FILE_UNREADABLE, left="Nothing was committed.", todo="It is looked for alone.")
        return super().stage(plan)

    def _read(self, split: Split) -> Report:
        payload, rows = parse_payload(split.payload), list[Row]()
        is_aside = any(part.key in self.messy.broken for part in payload.parts)
        for part in payload.parts:
            self._folder.read(part)  # Raises when it is not the file that was listed.
            file = self._folder.files[part.key]
            rows += [Row(file.number, -1, "error")] if is_aside else fates(file)
        report = Report(
            split=split.number,
            partition=split.partition,
            start=split.start,
            end=split.end or split.start,
            finished=payload.finished,
            source_files=len(payload.parts),
            marks={**payload.marks, **(payload.unread if is_aside else {})},
        )
        good = [row for row in rows if row.fate == "loaded"]
        return self._told(report, good, [row for row in rows if row.fate == "error"])

    def _replayed(self, split: Split) -> Report:
        rows, place = self.quarantine[split.payload], split.payload
        good = [row for row in rows if row.number >= 0 and kind_of(row) in self.heals]
        report = Report(split=split.number, partition=QUARANTINE, start=place, end=place)
        return self._told(report, good, [row for row in rows if row not in good])

    def _told(self, report: Report, good: list[Row], bad: list[Row]) -> Report:
        place = f"quarantine/{self._file_name()}"
        if bad:
            self.quarantine[place] = bad
        return replace(
            report,
            files=(self._staged(good),) if good else (),
            quarantine=(place,) if bad else (),
            rows=RowCounts(total=len(good) + len(bad), loaded=len(good), error=len(bad)),
        )


@dataclass(slots=True)
class AsideWorld(FilesWorld):
    """The installation."""

    messy: MessyFolder = field(init=False)
    quarantine: BadFiles = field(default_factory=dict)
    heals: set[int] = field(default_factory=set)
    is_narrow: bool = False
    """A file could not be read: batches are of one file until the next commit."""
    gives_up: int | None = None
    """What the last replay was refused for, when the operator has read it."""

    def __post_init__(self) -> None:
        FilesWorld.__post_init__(self)
        self.messy = MessyFolder(self.folder, self.rng)

    def make_source(self) -> Source:
        place = Place(scheme="file", bucket="", pattern=URI)
        spec = FilesSpec(
            place=place, format=Format.CSV, late_window=self.window, settle_s=SETTLE_S, skips_unreadable=True
        )
        return FilesSource(spec, store=self.folder, clock=self.clock)

    def make_stager(self) -> Stager:
        stager = AsideStager(self.folder, self.table.write_file, self.rng, faults=self.setting.faults / 3)
        stager.messy, stager.quarantine, stager.heals = self.messy, self.quarantine, self.heals
        return stager

    def make_limits(self) -> Limits:
        return Limits(files=1) if self.is_narrow else FilesWorld.make_limits(self)

    def _failed(self, actor: Actor, error: LadingError) -> None:
        if error.code == FILE_UNREADABLE:
            self.is_narrow = True
            self._remove(actor)
            return
        FilesWorld._failed(self, actor, error)  # noqa: SLF001  # what it overrides

    def _done(self, actor: Actor, result: Bill | None) -> None:
        FilesWorld._done(self, actor, result)  # noqa: SLF001  # what it overrides
        self.is_narrow = self.is_narrow and result is None

    # What operators do.

    def change_definition(self) -> None:
        """Bad rows of one more kind are good from now on."""
        self.heals.add(self.rng.randrange(_KINDS))

    def word(self, actor: Actor) -> None:
        """SKIP FILE, or LOAD FILE by somebody who has read that it brings nothing twice."""
        bill = actor.coordinator.bill
        if actor.work is not None or bill is None:
            return
        known = [file.key for file in self.folder.all]
        key = self.rng.choice([*known, f"{PLACE}{self.rng.randrange(len(known) + 3):05d}"])
        try:
            moved, _, told = moved_aside(
                bill.positions, FileWord(what=self.rng.choice((SKIP, LOAD)), name=key), URI, self.clock.now()
            )
        except SqlError:
            return
        if "twice" not in told:
            self._restore(actor, moved)

    def move(self, actor: Actor) -> None:
        """ALTER … offset: files behind a name are loaded, again if need be."""
        bill = actor.coordinator.bill
        if actor.work is None and bill is not None and self.folder.all:
            name, *_ = bill.positions.partitions
            self._ask(actor, {name: self.rng.choice(self.folder.all).key})

    def undo(self, actor: Actor) -> None:
        """UNDO ALTER: what was moved is put back, before anything was read."""
        bill = actor.coordinator.bill
        if actor.work is None and bill is not None and bill.kind.value == "edit" and bill.replaces is not None:
            before = self.bills.read_ever(self.job_id, bill.replaces)
            if not bill.accepts_rollback and bill.continues == bill.replaces:
                self._restore(actor, before.positions)

    def _restore(self, actor: Actor, positions: Positions) -> None:
        bill = actor.coordinator.bill
        if bill is not None:
            reason = f"{WORD}{self.rng.getrandbits(32):08x}"
            self.counts.edits += 1
            steps: Steps[Bill | None] = actor.coordinator.restore(positions, reason=reason, seen=bill.head)
            self._begin(actor, steps, None)

    def replay(self, actor: Actor) -> None:
        """REPLAY ERRORS, by somebody who gives up what he was told to."""
        if actor.work is None and actor.coordinator.bill is not None:
            self._begin(actor, self._replayed(actor), None)

    def _replayed(self, actor: Actor) -> Steps[Bill | None]:
        after, self.gives_up = self.gives_up, None
        order = SourceOrder(repeats_nothing=repeats_nothing)
        try:
            reason = "replay" if after is None else f"replay after {after}"
            return (yield from actor.coordinator.replay(order, reason=reason, after=after))
        except JobStateError as error:
            self.gives_up = error.facts.get("seq") if self.rng.random() < 0.5 else None
            raise

    # The end of a schedule.

    def finish(self) -> Findings:
        """Quiet time; then every row becomes good that can, and what waits is taken up, or given up as it is told."""
        findings = FilesWorld.finish(self)
        if findings.found or not self.actors:
            return findings
        self.heals |= set(range(_KINDS))
        actor, self.gives_up = self.actors[0], None
        for _ in range(1000):
            self.replay(actor)
            while actor.work is not None:
                self.step(actor)
            if self.gives_up is None:
                break
        self._check(findings)
        return findings

    def _check(self, findings: Findings) -> None:
        head = self.table.read_head_unchecked(JOB_ID)
        if head is not None:
            lineage = read_lineage(self.evidence(), head)
            read = check_lineage(lineage, self.table.file_rows, self.quarantine, self._comes, self._left_out, findings)
            self._check_counted(lineage[-1].positions, read, findings)
            named = {file.path for bill in lineage for file in bill.files}
            there = self.table.versions[-1].files - self.table.strangers
            findings.expect(named == there, LOSS, f"{len(named ^ there)} files are not those of the lineage")

    def _check_counted(self, positions: Positions, read: set[Row], findings: Findings) -> None:
        """A file counts as loaded only when its rows were read."""
        for file in self.folder.files.values():
            status = self._status_of(file, positions)
            if status in (FileStatus.KNOWN, FileStatus.CHANGED) and not self.has_rolled_back:
                missing = [row for row in fates(file) if row not in read]
                findings.expect(
                    not missing, LOSS, f"{file.key} counts as loaded, and {len(missing)} rows were not read"
                )

    def _left_out(self, positions: Positions) -> set[int]:
        """The numbers of the files that are left out."""
        skipped = {
            key for state in positions.partitions.values() for key in read_window(state, self.clock.now()).skipped
        }
        return {file.number for file in self.folder.all if file.key in skipped}

    def _status_of(self, file: SimulatedFile, positions: Positions) -> FileStatus:
        ((_, state),) = positions.partitions.items()
        listed = ObjectInfo(file.key, file.written, file.etag, file.modified)
        return read_window(state, self.clock.now()).status_of(listed, state.at)

    def _comes(self, row: Row, positions: Positions) -> bool:
        """Whether the file of a row is going to be read from these positions on, unless it is changed."""
        file = self.folder.all[row.key]
        status = self._status_of(file, positions) if file.key in self.folder.files else None
        return status in (FileStatus.FRESH, FileStatus.LATE, FileStatus.ASKED)

    @property
    def has_rolled_back(self) -> bool:
        """Whether rows may be gone with commits that somebody took away."""
        return any(version.restored for version in self.table.versions)


def _parts(split: Split) -> Sequence[FilePart]:
    return parse_payload(split.payload).parts


def run_aside_schedule(seed: int) -> tuple[AsideWorld, Findings]:
    """One schedule, from its seed alone."""
    rng = Random(seed)
    setting = Setting(
        start="",
        faults=rng.choice([0.0, 0.05, 0.2, 0.4]),
        rolls_back=rng.random() < 0.25,
        cleans=rng.random() < 0.25,
    )
    world = AsideWorld(rng, setting)
    events = _events(world, moves=rng.random() < 0.5)
    findings = Findings()
    try:
        for _, event in rng.choices(events, [weight for weight, _ in events], k=rng.randint(40, 160)):
            event()
        findings.found += world.finish().found
    except LadingError as error:
        findings.add(LOSS, f"what must be there could not be read: {error}")
    return world, findings


def _events(world: AsideWorld, *, moves: bool) -> list[tuple[int, Callable[[], None]]]:
    rng, setting = world.rng, world.setting

    def with_actor(event: Callable[[Actor], None]) -> Callable[[], None]:
        def happen() -> None:
            if not world.actors:
                world.spawn()
            event(rng.choice(world.actors))

        return happen

    def run_on(actor: Actor) -> None:
        for _ in range(rng.randint(1, 25)):
            if actor in world.actors:
                world.step(actor)

    def spawn() -> None:
        if len(world.actors) < 2:
            world.spawn()

    return [
        (24, with_actor(run_on)),
        (9, world.folder.appear),
        (8, world.pass_time),
        (7, with_actor(world.replay)),
        (8, with_actor(world.word)),
        (4 if moves else 0, with_actor(world.move)),
        (2, with_actor(world.undo)),
        (3, world.messy.arrive),
        (2, world.messy.repair),
        (3, world.change_definition),
        (3, with_actor(world.kill)),
        (2, spawn),
        (1, world.folder.delete),
        (1, with_actor(world.say_goodbye)),
        (1, world.lose_store),
        (2, world.table.deliver_pending),
        (2 if setting.rolls_back else 0, world.roll_back),
        (1 if setting.cleans and not setting.rolls_back else 0, world.clean_up),
    ]
