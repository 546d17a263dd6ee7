"""A job of which there are only bills and quarantine files, and an errors table of a real format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import cast

from lading import failpoints
from lading.commit.next_bill import draft_edit, draft_opening, draft_restart, draft_takeover
from lading.commit.steps import STEP_NAMES
from lading.ids import Incarnation, JobId, new_incarnation, new_job_id
from lading.model.bill import Bill, BillKind, Head
from lading.model.errors_copied import ErrorsCopied
from lading.model.job import Job
from lading.model.positions import Positions
from lading.model.table import TableSpec
from lading.model.tally import RowCounts, Tally
from lading.pipeline.quarantine import QuarantineFile
from lading.service.runtime.caretaker import Caretaker
from lading.service.runtime.errors_columns import ERRORS_COLUMNS
from lading.service.runtime.errors_copy import ErrorsCopy, ErrorsPlace
from lading.storage.store import open_store
from lading.store.protocols import MetadataStore
from lading.tables.base import LakeTable
from lading.tables.bills import StoredBills
from lading.tables.maintenance import CarePolicy
from lading.testing.clock import ManualClock
from lading.testing.memory_store import MemoryStore
from tests.tables.drive import stamp
from tests.tables.rig import Rig

SPEC = TableSpec(columns=ERRORS_COLUMNS)
POINTS = tuple(f"errors.{name}" for name in STEP_NAMES)


class KilledError(BaseException):
    """The process dies here."""


class NoCopies:
    """What a restart needs of the newest commit, as the table of the job keeps it."""

    def __init__(self) -> None:
        self.kept: dict[Head, Bill] = {}

    def put(self, bill: Bill) -> None:
        """Only what a test puts is kept."""

    def read(self, job_id: JobId, head: Head) -> Bill | None:
        return self.kept.get(head)


class CountedBills(StoredBills):
    """Counts what is read."""

    reads = 0

    def read(self, job_id: JobId, head: Head) -> Bill:
        self.reads += 1
        return super().read(job_id, head)


class BadJob:
    """A job that commits bad rows."""

    def __init__(self, path: Path, rig: Rig, errors: str = "errors") -> None:
        self.rig, self.errors = rig, errors
        self.job = Job(job_id=new_job_id(), name="shop.orders")
        self.folder = str(path / "quarantine" / self.job.job_id)
        self.copies = NoCopies()
        self.bills = CountedBills(open_store(str(path / "t")), self.copies)
        self.clock = ManualClock()
        self.wanted: Counter[tuple[int, int, str]] = Counter()
        self.newest = draft_opening(self.job, Positions(), stamp())
        self.bills.put(self.newest)
        self._files = 0

    def commit(self, bill: Bill) -> Bill:
        self.bills.put(bill)
        self.newest = bill
        return bill

    def load(self, *bad: str) -> Bill:
        """A batch with these bad rows, and a good one."""
        base = self.newest
        rows = RowCounts(total=len(bad) + 1, unselected=1, error=len(bad))
        tally = Tally(rows=rows, commits=1)
        drafted = draft_takeover(self.job, base, stamp())
        quarantine = (self._file(base.seq + 1, bad),) if bad else ()
        return self.commit(
            replace(drafted, kind=BillKind.LOAD, tally=tally, totals=base.totals + tally, quarantine=quarantine)
        )

    def replay(self, *bad: str, good: int = 0) -> Bill:
        """All bad rows are taken up: these are bad again, and some are not."""
        base = self.newest
        rows = RowCounts(total=len(bad) + good, unselected=good, error=len(bad))
        drafted = replace(
            draft_takeover(self.job, base, stamp()),
            kind=BillKind.REPLAY,
            tally=Tally(rows=rows, commits=1),
            quarantine=(self._file(base.seq + 1, bad),) if bad else (),
            replayed_through=base.seq,
        )
        return self.commit(replace(drafted, totals=base.totals + drafted.added))

    def _file(self, seq: int, bad: tuple[str, ...]) -> str:
        self._files += 1
        file = QuarantineFile(self.folder, f"{self._files}-0")
        for row, raw in enumerate(bad, 1):
            file.add(file=f"in/{seq}.csv", row=row, reason="not a number", raw=raw.encode())
            self.wanted[seq, row, raw] += 1
        return file.close()

    def take_over(self) -> Bill:
        return self.commit(draft_takeover(self.job, self.newest, stamp()))

    def edit(self) -> Bill:
        return self.commit(draft_edit(self.job, self.newest, Positions(), stamp(), reason="moved"))

    def roll_back(self, commits: int) -> Bill:
        """The table is put back by some commits, and somebody accepts that."""
        restored = self.newest
        for _ in range(commits):
            restored = self.bills.read(self.job.job_id, restored.replaces) if restored.replaces else restored
        newest = self.newest
        return self.commit(
            draft_restart(self.job, restored, newest, restored, newest.seq, stamp(version=0), reason="meant")
        )

    def table(self) -> LakeTable:
        return cast("LakeTable", self.rig.reopen(self.errors))

    def copier(self, incarnation: Incarnation | None = None, known: ErrorsCopied | None = None) -> ErrorsCopy:
        """What a process that was just started copies with."""
        place = ErrorsPlace(
            job_id=self.job.job_id,
            job_name=self.job.name,
            bills=self.bills,
            folder=self.folder,
            name="shop.errors",
            open=self.table,
        )
        store = cast("MetadataStore", MemoryStore(Random(1), faults=0))
        caretaker = Caretaker(CarePolicy(), self.clock, store)
        return ErrorsCopy(place, self.clock, incarnation or new_incarnation(), caretaker, known)

    def later(self) -> None:
        """After the longest wait."""
        self.clock.sleep(timedelta(hours=1).total_seconds())

    def copied(self) -> Counter[tuple[int, int, str]]:
        rows = [row for row in self.table().scan().to_pylist() if row["job_id"] == self.job.job_id]
        assert {row["job"] for row in rows} <= {"shop.orders"}
        return Counter((row["seq"], row["row_number"], row["raw"]) for row in rows)


@contextmanager
def at_point(number: int) -> Iterator[list[str]]:
    """Within this the process dies at the n-th step of copying; -1: at none. The steps that it came to."""
    seen: list[str] = []

    def step(name: str) -> None:
        seen.append(name)
        if len(seen) - 1 == number:
            raise KilledError

    for name in POINTS:
        failpoints.arm(name, step)
    try:
        yield seen
    finally:
        failpoints.disarm_all()
