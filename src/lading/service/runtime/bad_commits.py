"""Which commits of a job have bad rows, from a position on: found by going back from the newest bill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lading.commit.protocols import Bills
from lading.errors import HeadLostError
from lading.ids import JobId
from lading.model.bill import Bill, BillKind, Head
from lading.model.positions import PartitionState

EPOCH, BAD = "epoch", "bad"
"""Marks of a position: where the count of the commit before it began (`_counting`), and how many bad rows the job
counted up to there."""
BEGINNING = PartitionState(at="0", marks={EPOCH: "0", BAD: "0"})
"""Before the first commit of a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadCommit:
    """A commit with bad rows that are still to be copied."""

    head: Head
    rows: int
    lost: str = ""
    """Why its bad rows are not known any more."""


def bad_rows(bill: Bill) -> int:
    """How many bad rows a job has counted up to a commit."""
    return bill.totals.rows.error + bill.totals.rows.late


def marks_after(bill: Bill) -> dict[str, str]:
    """The marks of the position behind a commit."""
    return {EPOCH: _counting(bill), BAD: str(bad_rows(bill))}


def _counting(bill: Bill) -> str:
    """Stands for all commits among which bad rows are only ever added. A replay counts those no more that it takes up,
    and raises no epoch."""
    return f"{bill.epoch}/{bill.replayed_through}" if bill.replayed_through else str(bill.epoch)


class BadCommits:
    """The commits from a position on. Each bill is looked at once; what landed is the chain of `replaces`.

    The way back ends early where the job has not counted a bad row since the position: within one epoch, and after the
    same replay, its totals only grow. A rollback that was accepted makes them smaller, and raises the epoch.
    """

    def __init__(self, bills: Bills, job_id: JobId, since: PartitionState) -> None:
        self.found: list[BadCommit] = []
        """Those that are known, in any order until `look` has seen all."""
        self.newest: Bill | None = None
        """The newest commit that was looked at."""
        self._bills = bills
        self._job_id = job_id
        self._since = since
        self._next = int(since.at)
        self._ways: list[tuple[Bill, int]] = []
        """A bill to look at, and the seq before which nothing is to be looked at any more."""

    @property
    def is_complete(self) -> bool:
        """Whether all of them are known, up to `newest`."""
        return not self._ways

    def look(self, newest: Bill, is_over: Callable[[], bool] = lambda: False) -> bool:
        """Look at what is new, and go on with what was left when time was over. Whether all are known."""
        if newest.seq >= self._next:
            self._ways.append((newest, self._next))
            self._next, self.newest = newest.seq + 1, newest
        while self._ways and not is_over():
            bill, since = self._ways[-1]
            older = self._looked(bill, since)
            self._ways.pop()
            if older is not None:
                self._ways.append((older, since))
        if not self._ways:
            self.found.sort(key=lambda each: each.head.seq)
        return not self._ways

    def forget_before(self, seq: int) -> None:
        """What was copied needs not be copied again."""
        self.found = [each for each in self.found if each.head.seq >= seq]

    def is_past_marks(self, position: PartitionState) -> bool:
        """Whether the marks of the position no longer end the way back, so that it is worth a commit to move it."""
        return self.newest is not None and position.marks.get(EPOCH) != _counting(self.newest)

    def _looked(self, bill: Bill, since: int) -> Bill | None:
        """Look at one bill. The one before it, when that is to be looked at too."""
        is_last = self._counted_none_before(bill)
        before, lost = (None, None) if is_last else self._before(bill, since)
        if bill.quarantine:
            rows = bill.tally.rows.error + bill.tally.rows.late
            self.found.append(BadCommit(head=bill.head, rows=rows))
        elif bill.is_without_history and not is_last:
            self.found.append(_lost(bill.head, "the bill of this commit is gone, and with it where its bad rows are"))
        self.found += [lost] if lost is not None else []
        return before

    def _before(self, bill: Bill, since: int) -> tuple[Bill | None, BadCommit | None]:
        older = bill.replaces
        if older is None or older.seq < since:
            return None, None
        try:
            return self._bills.read(self._job_id, older), None
        except HeadLostError:
            # A job that has its errors table for the first time: older bills went with their time.
            is_first = int(self._since.at) == 0
            why = f"the bills of commits {since} to {older.seq} are gone, and with them where their bad rows are"
            return None, None if is_first else _lost(older, why)

    def _counted_none_before(self, bill: Bill) -> bool:
        if bill.kind is BillKind.REPLAY:
            return False
        marks, before = self._since.marks, bad_rows(bill) - bill.tally.rows.error - bill.tally.rows.late
        return (marks.get(EPOCH), marks.get(BAD)) == (_counting(bill), str(before))


def _lost(head: Head, why: str) -> BadCommit:
    return BadCommit(head=head, rows=1, lost=why)
