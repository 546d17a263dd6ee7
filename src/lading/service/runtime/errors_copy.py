"""Copying the bad rows of a job to its errors table, each once.

The errors table follows from the bills of the job, and has a head of the job's own (`errors_id`): its position is the
seq of the next commit of the job to be looked at. Rows and position change in one commit, by the same steps and the
same compare-and-set as those of a job, whose source are the bills:

1. find: go back from the newest bill of the job to the position, and note the commits with bad rows. Nothing durable.
2. stage: read their quarantine files and write data files. Dies here: files that nobody names; copied again.
3. commit: rows and position, both or neither. Dies before it: copied again. Dies after it: the position says so.
4. look after the errors table. Dies before: it is done after a later commit.

Of two services that copy for one job the first one to commit wins, and the other reads the position again. Nothing of
the job waits for it or depends on it: what fails is told, and tried again.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from lading.clock import Clock
from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts
from lading.commit.steps import Steps, T
from lading.errors import CommitRefusedError, FencedError, LadingError, RolledBackError, TableError
from lading.failpoints import failpoint
from lading.ids import Incarnation, JobId, errors_id, new_token
from lading.model.batch import BatchPlan, Limits, Report, Split
from lading.model.bill import Bill
from lading.model.errors_copied import ErrorsCopied
from lading.model.job import Job
from lading.model.positions import PartitionState, Positions
from lading.model.tally import RowCounts
from lading.service.runtime.bad_commits import BEGINNING, BadCommit, BadCommits, marks_after
from lading.service.runtime.bad_rows import bad_rows_at
from lading.service.runtime.caretaker import Caretaker
from lading.service.runtime.errors_columns import ErrorsRow, batches_of, check_errors_columns, errors_row
from lading.service.security.redaction import redact
from lading.tables.base import LakeTable
from lading.tables.bills import StoredBills
from lading.tables.registry import open_writer

PARTITION = "commits"
"""What the bills of a job are called as a source."""
BATCH_ROWS = 200_000
"""So many rows are copied in one commit, and all of the commit that they end in."""
FIRST_WAIT_S = 10.0
LONGEST_WAIT_S = 600.0
ROUND_S = 30.0
"""After so long the job goes on, and the rest is copied after its next batch."""
LOOK_S = 2.0
"""So long it looks for commits with bad rows at a time: of a job that has its errors table for the first time, and
long had none, that may be very many bills."""
_COUNT_S = 1.0
_log = logging.getLogger("lading.jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorsPlace:
    """Where the bad rows of a job are, and where they go."""

    job_id: JobId
    job_name: str
    bills: StoredBills
    """Beside the table of the job."""
    folder: str
    """The quarantine of the job in the home."""
    name: str
    """The errors table: `database.table`."""
    open: Callable[[], LakeTable]


class ErrorsCopy:
    """Of one job, in one incarnation. One thread at a time copies; any may ask what is due."""

    def __init__(
        self,
        place: ErrorsPlace,
        clock: Clock,
        incarnation: Incarnation,
        caretaker: Caretaker,
        known: ErrorsCopied | None = None,
    ) -> None:
        """`known` is what the store remembers of an earlier life: a hint."""
        is_same = known is not None and known.table == place.name
        self.summary = known if is_same and known is not None else ErrorsCopied(table=place.name, behind=None)
        self._told: ErrorsCopied | None = None
        self._place = place
        self._clock = clock
        self._incarnation = incarnation
        self._caretaker = caretaker
        self._open: OpenErrors | None = None
        self._tries = 0
        self._next_s = 0.0
        self._is_done = False
        self._uncopied: BadCommits | None = None
        """While it fails: what is to be copied, as far as that can be told from what is remembered."""

    @property
    def needs_from(self) -> int | None:
        """The first commit of the job whose bill and bad rows are still needed. None: none are."""
        return None if self._is_done else self.summary.through or 0

    def is_due(self) -> bool:
        """Whether something is still to be copied, and may be tried now."""
        return not self._is_done and self._clock.monotonic_s() >= self._next_s

    def copy(self, newest: Bill, is_halted: Callable[[], bool] = lambda: False) -> bool:
        """Copy what is missing up to a bill that is the head of the job. Whatever fails is told in `summary`.

        Whether that says something new for the record of the job: not that commits without bad rows were passed.
        """
        self._is_done, told = False, self._told
        if self._clock.monotonic_s() < self._next_s:
            self._count(newest)
        else:
            end_s = self._clock.monotonic_s() + ROUND_S
            try:
                self._copy(newest, lambda: is_halted() or self._clock.monotonic_s() >= end_s)
            except Exception as error:  # noqa: BLE001 - told in the record; nothing of a load depends on it
                self._note(newest, error)
        self._told = replace(self.summary, through=None)
        return self._told != told

    def _copy(self, newest: Bill, is_over: Callable[[], bool]) -> None:
        try:
            is_whole = self._opened().copy(newest, is_over)
        except (FencedError, CommitRefusedError):
            # Somebody else has copied meanwhile: the position is read again.
            self._open = None
            is_whole = self._opened().copy(newest, is_over)
        self._is_done, self._tries, self._next_s, self._uncopied = is_whole, 0, 0.0, None
        self.summary = self._opened().summary()

    def _opened(self) -> OpenErrors:
        if self._open is None:
            lake = self._place.open()
            check_errors_columns(self._place.name, lake.schema())
            self._open = OpenErrors(self._place, lake, self._clock, self._incarnation, self._caretaker)
        return self._open

    def _note(self, newest: Bill, error: Exception) -> None:
        self._open, self._tries = None, self._tries + 1
        why = error.what if isinstance(error, LadingError) else f"{type(error).__name__}: {error}"
        if isinstance(error, RolledBackError):
            why += '. Restore it, or name another table with ALTER ("errors.table")'
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self._tries - 1, 10))
        self._next_s = self._clock.monotonic_s() + wait_s
        self.summary = replace(self.summary, error=redact(why), tries=self._tries)
        self._count(newest)
        _log.warning(
            "bad rows could not be copied to %s, trying again in %g s: %s",
            self._place.name,
            wait_s,
            self.summary.error,
            extra={"job": self._place.job_name},
        )

    def _count(self, newest: Bill) -> None:
        """How far it is behind, as far as that can be told from what is remembered of its position."""
        through = self.summary.through
        if through is None:
            return
        end_s = self._clock.monotonic_s() + _COUNT_S
        since = PartitionState(at=str(through))
        known = self._uncopied = self._uncopied or BadCommits(self._place.bills, self._place.job_id, since)
        try:
            is_told = known.look(newest, lambda: self._clock.monotonic_s() >= end_s)
        except LadingError:
            self._uncopied, is_told = None, False
        self.summary = replace(self.summary, behind=len(known.found) if is_told else None)


class OpenErrors:
    """The errors table while it is open: the source of its coordinator, as planner and as stager."""

    def __init__(
        self, place: ErrorsPlace, lake: LakeTable, clock: Clock, incarnation: Incarnation, caretaker: Caretaker
    ) -> None:
        self._place = place
        self._lake = lake
        self._clock = clock
        self._caretaker = caretaker
        eid = errors_id(place.job_id)
        job = Job(job_id=eid, name=place.job_name, definition=f"The bad rows of job {place.job_id}.")
        ports = CoordinatorPorts(
            table=lake, bills=lake.bills, planner=self, stager=self, clock=clock, new_token=new_token
        )
        self._coordinator = Coordinator(job, ports, incarnation)
        # Nobody is fenced by a commit of its own: the compare-and-set of the next one is enough.
        opening = _run(self._coordinator.start(said_goodbye=lake.read_head(eid)))
        self._caretaker.opened(opening)
        self._commits = BadCommits(place.bills, place.job_id, self._position())
        self._chosen: list[BadCommit] = []

    def copy(self, newest: Bill, is_over: Callable[[], bool]) -> bool:
        """Copy until nothing is left, or the time is over. Whether nothing is left."""
        if (at := int(self._position().at)) > newest.seq + 1:
            msg = (
                f"Table {self._place.name} has the bad rows of the job up to its commit {at - 1}, and the job is at "
                f"commit {newest.seq}"
            )
            todo = "An older state of the job's table came back: name another errors table with ALTER."
            raise TableError(msg, left="Nothing was copied.", todo=todo)
        end_s = self._clock.monotonic_s() + LOOK_S
        while self._commits.look(newest, lambda: is_over() or self._clock.monotonic_s() >= end_s):
            self._commits.forget_before(int(self._position().at))
            if not self._commits.found and not self._commits.is_past_marks(self._position()):
                return True
            bill = _run(self._coordinator.run_batch())
            while self._coordinator.repaired:
                _log.warning("%s", self._coordinator.repaired.pop(), extra={"job": self._place.job_name})
            if bill is not None:
                self._caretaker.committed(self._lake, bill)
            if is_over():
                break
        return False

    def summary(self) -> ErrorsCopied:
        """How far it is."""
        bill, commits, at = self._coordinator.bill, self._commits, int(self._position().at)
        commits.forget_before(at)
        # Commits without bad rows move no position: they are dealt with all the same.
        is_all = commits.is_complete and not commits.found and commits.newest is not None
        return ErrorsCopied(
            table=self._place.name,
            through=commits.newest.seq + 1 if is_all and commits.newest is not None else at,
            rows=bill.totals.rows.loaded if bill is not None else 0,
            behind=len(commits.found) if commits.is_complete else None,
        )

    def _position(self) -> PartitionState:
        bill = self._coordinator.bill
        return bill.positions.partitions[PARTITION] if bill is not None else BEGINNING

    # As the planner of the coordinator.

    def open(self, start: str) -> Positions:
        return Positions(partitions={PARTITION: BEGINNING})

    def take_in(self, base: Positions) -> Positions:
        return base

    def plan(self, base: Positions, limits: Limits) -> BatchPlan:
        position, newest = base.partitions[PARTITION], self._commits.newest
        chosen, rows = list[BadCommit](), 0
        left = [each for each in self._commits.found if each.head.seq >= int(position.at)]
        while left and rows < BATCH_ROWS:
            chosen.append(left.pop(0))
            rows += chosen[-1].rows
        self._chosen = chosen
        if newest is None or (not chosen and not self._commits.is_past_marks(position)):
            return BatchPlan(positions=base, splits=())
        end = chosen[-1].head.seq + 1 if left else newest.seq + 1
        return BatchPlan(
            positions=base, splits=(Split(number=0, partition=PARTITION, start=position.at, end=str(end)),)
        )

    # As its stager.

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        (split,), newest, rows = plan.splits, self._commits.newest, 0
        is_all = newest is not None and split.end == str(newest.seq + 1)
        spec = self._lake.writer_spec()
        writer = open_writer(spec, f"{secrets.token_hex(8)}-0")
        try:
            for batch in batches_of(self._rows(), self._place.job_name, self._place.job_id, spec.schema):
                writer.write(batch)
                rows += batch.num_rows
            files = writer.close()
        except BaseException:
            writer.abort()
            raise
        report = Report(
            split=0,
            partition=PARTITION,
            start=split.start,
            end=split.end or "",
            files=files,
            rows=RowCounts(total=rows, loaded=rows),
            marks=marks_after(newest) if is_all and newest is not None else {},
        )
        return [report]

    def _rows(self) -> Iterator[ErrorsRow]:
        bills, job_id, folder = self._place.bills, self._place.job_id, self._place.folder
        for each in self._chosen:
            if each.lost:
                yield errors_row(each.head.seq, None, {"reason": each.lost})
                continue
            bill = bills.read(job_id, each.head)
            for told in bad_rows_at(bill.quarantine, bill.job_id, folder, bills.storage, is_strict=True):
                yield errors_row(bill.seq, bill.billed_at, told)


def _run(steps: Steps[T]) -> T:
    """Drive the steps, each with a failpoint of its own name."""
    while True:
        try:
            name = next(steps)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]  # the generator's own return type
        failpoint(f"errors.{name}")
