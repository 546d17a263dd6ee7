"""The schedules of replays once more, with an errors table that follows the bills of the job.

An incarnation copies what it knows of, at any moment, also one that was fenced and does not know it yet, and dies
at any step. Every bad row of every commit of the lineage must be in the errors table once; of commits that a rollback
took away, at most once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import cast

from lading import failpoints
from lading.commit.steps import STEP_NAMES
from lading.errors import LadingError
from lading.ids import Incarnation, errors_id
from lading.model.batch import BatchPlan, Report, StagedFile
from lading.model.bill import Bill, Head
from lading.model.tally import RowCounts
from lading.service.runtime.bad_commits import marks_after
from lading.service.runtime.caretaker import Caretaker
from lading.service.runtime.errors_copy import PARTITION, ErrorsPlace, OpenErrors
from lading.store.protocols import MetadataStore
from lading.tables.base import LakeTable
from lading.tables.bills import StoredBills
from lading.tables.maintenance import CarePolicy
from lading.tables.memory import MemoryBills
from lading.testing.clock import ManualClock
from lading.testing.faulty import FaultyTable
from lading.testing.memory_store import MemoryStore
from lading.testing.replays_world import Quarantined, ReplaysWorld, replay_events
from lading.testing.source import Row
from lading.testing.verdict import DUP, LOSS, Findings
from lading.testing.world import Actor, Setting

Copied = tuple[int, Row]
"""The seq of the commit, and its bad row."""
_POINTS = tuple(f"errors.{name}" for name in STEP_NAMES)
MAX_QUIET_TURNS = 1000
_NEVER = CarePolicy(every_commits=1_000_000_000)


class ErrorsTable(FaultyTable):
    """In memory, with bills of its own."""

    def __init__(self, rng: Random, *, faults: float) -> None:
        super().__init__(rng, faults=faults)
        self.bills = MemoryBills(self)


class Copier(OpenErrors):
    """The real one, but that it writes rows in memory."""

    lake: ErrorsTable
    quarantine: Quarantined
    rng: Random

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        (split,), newest = plan.splits, self._commits.newest
        read = self._place.bills.read
        rows = [
            (each.head.seq, row)
            for each in self._chosen
            for place in read(self._place.job_id, each.head).quarantine
            for row in self.quarantine[place]
        ]
        path = f"errors/{self.rng.getrandbits(48):012x}"
        self.lake.write_file(path, rows)
        is_all = newest is not None and split.end == str(newest.seq + 1)
        report = Report(
            split=0,
            partition=PARTITION,
            start=split.start,
            end=split.end or "",
            files=(StagedFile(path=path, rows=len(rows), size_bytes=8 * len(rows)),) if rows else (),
            rows=RowCounts(total=len(rows), loaded=len(rows)),
            marks=marks_after(newest) if is_all and newest is not None else {},
        )
        return [report]


@dataclass(slots=True)
class ErrorsWorld(ReplaysWorld):
    """The installation."""

    errors: ErrorsTable = field(init=False)
    copiers: dict[Incarnation, Copier] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ReplaysWorld.__post_init__(self)
        self.errors = ErrorsTable(self.rng, faults=self.setting.faults)

    def copy(self, actor: Actor) -> None:
        """An incarnation copies up to the commit that it takes for the newest, and may die in it."""
        bill = actor.coordinator.bill
        if actor.work is not None or bill is None:
            return
        left = self.rng.randint(0, 60)

        def step(_name: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise SystemExit  # The process dies here.

        for name in _POINTS:
            failpoints.arm(name, step)
        try:
            self._copy(actor.coordinator.incarnation, bill, lambda: self.rng.random() < 0.1)
        except SystemExit:
            self.kill(actor)
        finally:
            failpoints.disarm_all()

    def _copy(self, incarnation: Incarnation, bill: Bill, is_over: Callable[[], bool]) -> bool:
        try:
            if incarnation not in self.copiers:
                self.copiers[incarnation] = self._open(incarnation)
            return self.copiers[incarnation].copy(bill, is_over)
        except LadingError:
            # As the job does: it is opened again, and what is there is read again.
            self.copiers.pop(incarnation, None)
            return False
        except SystemExit:
            self.copiers.pop(incarnation, None)
            raise

    def _open(self, incarnation: Incarnation) -> Copier:
        place = ErrorsPlace(
            job_id=self.job_id,
            job_name="simulated",
            bills=cast("StoredBills", self.bills),
            folder="",
            name="errors",
            open=lambda: cast("LakeTable", self.errors),
        )
        store = cast("MetadataStore", MemoryStore(Random(0), faults=0))
        caretaker = Caretaker(_NEVER, ManualClock(), store)
        copier = Copier(place, cast("LakeTable", self.errors), self.clock, incarnation, caretaker)
        copier.lake, copier.quarantine, copier.rng = self.errors, self.quarantine, self.rng
        return copier

    def finish(self) -> Findings:
        """Quiet time; then all that is missing is copied."""
        findings = ReplaysWorld.finish(self)
        self.errors.faults = 0.0
        self.errors.drop_or_deliver_pending()
        if findings.found or not self.actors:
            return findings
        bill = self.actors[0].coordinator.bill
        turns = iter(range(MAX_QUIET_TURNS))
        for _ in range(10):
            # Turns end: one that copied the same rows for ever would be found out.
            if bill is not None and self._copy(Incarnation("the last"), bill, lambda: next(turns, None) is None):
                break
        if bill is not None:
            self._check_copied(bill, findings)
        return findings

    def _check_copied(self, newest: Bill, findings: Findings) -> None:
        copied = Counter[Copied](
            row for path in self.errors.versions[-1].files for row in self.errors.file_rows(path) or ()
        )
        head = self.errors.read_head_unchecked(errors_id(self.job_id))
        findings.expect(head is not None, LOSS, "the errors table was never opened")
        away, wanted = self._taken_away(), Counter[Copied]()
        for bill in self._line(newest.head):
            rows = [(bill.seq, row) for place in bill.quarantine for row in self.quarantine[place]]
            wanted.update(rows if bill.head not in away else ())
        missing, twice = wanted - copied, [each for each, count in copied.items() if count > 1]
        findings.expect(not missing, LOSS, f"{missing.total()} bad rows are not in the errors table: {missing}")
        findings.expect(not twice, DUP, f"bad rows are in the errors table more than once: {twice[:3]}")

    def _taken_away(self) -> set[Head]:
        """Commits that a rollback took away together with their heads, also those that another one brought back."""
        away, versions = set[Head](), self.table.versions
        for before, now in pairwise(versions):
            if now.restored:
                was, left = (self._line(version.heads.get(self.job_id)) for version in (before, now))
                away |= {bill.head for bill in was} - {bill.head for bill in left}
        return away

    def _line(self, head: Head | None) -> list[Bill]:
        line = list[Bill]()
        while head is not None:
            line.append(self.bills.read_ever(self.job_id, head))
            head = line[-1].replaces
        return line


def run_errors_schedule(seed: int) -> tuple[ErrorsWorld, Findings]:
    """One schedule, from its seed alone."""
    rng = Random(seed)
    setting = Setting(start="TRIM_HORIZON", faults=rng.choice([0.0, 0.05, 0.2, 0.4]), rolls_back=rng.random() < 0.4)
    world = ErrorsWorld(rng, setting)
    world.source.bad_share = 0.4

    def copy() -> None:
        if world.actors:
            world.copy(rng.choice(world.actors))

    events = [*replay_events(world), (10, copy), (2, world.errors.deliver_pending)]
    findings = Findings()
    try:
        for _, event in rng.choices(events, [weight for weight, _ in events], k=rng.randint(40, 160)):
            event()
        findings.found += world.finish().found
    except LadingError as error:
        findings.add(LOSS, f"what must be there could not be read: {error}")
    return world, findings
