"""Running one job: the coordinator's steps, and what the job's record learns of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime

from lading.commit.coordinator import Coordinator, CoordinatorPorts
from lading.commit.steps import run_steps
from lading.errors import (
    FencedError,
    JobStateError,
    LadingError,
    RolledBackError,
    SchemaMismatchError,
    StoreError,
    TableNotFoundError,
    UnknownOutcomeError,
)
from lading.failpoints import failpoint
from lading.ids import JobId, new_token
from lading.jobs.events import (
    BatchCancelled,
    BatchCommitted,
    BatchFailed,
    BatchStarted,
    CaughtUp,
    Event,
    Fenced,
    Goodbye,
    NothingToDo,
    Opened,
    RolledBack,
    TargetGone,
)
from lading.jobs.reasons import failure_of
from lading.jobs.record import JobRecord, JobState
from lading.model.bill import Bill
from lading.plan.planner import Planner
from lading.service.compile.compiled import SourceSurvey
from lading.service.runtime.caretaker import Caretaker
from lading.service.runtime.context import OpenJob, RunnerContext, is_full, range_of, retry_delay_s, save_event
from lading.service.runtime.file_surveys import SurveyTeller
from lading.service.runtime.interrupted import check_not_cut_off, drop_begun, has_begun
from lading.service.runtime.opening import created_positions
from lading.service.runtime.store_health import try_write
from lading.service.security.redaction import redact
from lading.status.outcomes import Outcome, outcome_of
from lading.store.records import AuditEntry

REMARK_EVERY_S = 60.0
"""How often an idle job looks at everything there is, to say what it passes over."""


class JobRunner:
    """One job in this incarnation. One thread at a time works in it; `halt` may be called by any."""

    def __init__(self, job_id: JobId, tools: RunnerContext) -> None:
        self._job_id = job_id
        self._tools = tools
        self.on_progress: Callable[[Bill], None] = lambda bill: None
        self.on_open: Callable[[OpenJob, Bill], None] = lambda opened, bill: None
        self._log = logging.getLogger("lading.jobs")
        self._halted = threading.Event()
        self.turn = threading.RLock()
        self._open_job: OpenJob | None = None
        self.was_full = False
        """Whether the last batch was cut off by a limit, so that more is there."""
        self._caretaker = Caretaker(tools.care, tools.clock, tools.store)
        self._scale = 1.0
        self._known: JobRecord | None = None
        """The record as this incarnation last read it."""
        self._is_noted = False
        self._remark_due_s = 0.0
        self._began_s = 0.0
        self._is_retry = False
        """Whether the job was let go because of an error, and its next attempt opens it again."""
        self.retry_in_s = 0.0
        """How long to wait before the next attempt, after one that failed."""
        self.is_cut_off = False
        """Whether the last `run` ended before this job had loaded what there was, because its time was over."""
        self._teller = SurveyTeller(tools.clock, tools.watches)
        self.survey: SourceSurvey | None = None
        """What was in the source besides, when it last had nothing to load."""

    @property
    def opened(self) -> OpenJob | None:
        """What is there while the job is open."""
        return self._open_job

    @property
    def interval_s(self) -> float:
        """How long to wait after the source had nothing."""
        return self._open_job.compiled.interval_s if self._open_job else 10.0

    def halt(self) -> None:
        """Stop before the next commit, also a batch that is being staged. Returns at once; see `wait`."""
        self._halted.set()
        opened = self._open_job
        if opened is not None:
            opened.stager.cancel()

    def wait_for_halt(self, timeout_s: float) -> bool:
        """Wait, unless the job is to stop. Whether it is."""
        return self._halted.wait(timeout_s)

    def wait(self, timeout_s: float) -> bool:
        """Whether the batch that was running has ended in time."""
        if not self.turn.acquire(timeout=timeout_s):
            return False
        self.turn.release()
        return True

    def record(self) -> JobRecord:
        """The job as the store has it."""
        return self._tools.store.load_job_by_id(self._job_id).record

    def behind(self) -> str:
        """How much is still to be loaded, in words; empty when the job is not open or nobody can tell."""
        opened = self._open_job
        if opened is None or opened.coordinator.bill is None:
            return ""
        compiled, positions = opened.compiled, opened.coordinator.bill.positions
        try:
            return compiled.survey(positions).behind if compiled.survey is not None else compiled.behind(positions)
        except LadingError:
            return ""  # The batch that follows says what is wrong.

    def look_everywhere(self) -> None:
        """Have the next batch look for everything there is, however long that takes."""
        opened = self._open_job
        if opened is not None:
            opened.compiled.look_everywhere()

    def is_idle(self) -> bool:
        """Whether the source has nothing for an open job, as far as can be told without table and store.

        True promises that a batch would find nothing. A source that cannot be asked is not idle: the batch says why.
        """
        opened = self._open_job
        if opened is None or opened.coordinator.bill is None:
            return False
        if self._tools.clock.monotonic_s() >= self._remark_due_s:
            return False
        try:
            if opened.compiled.stage is None:
                return not opened.compiled.can_learn_columns()
            plan = opened.planner.plan(opened.coordinator.bill.positions, opened.compiled.job.limits)
        except Exception:  # noqa: BLE001 - the batch that follows meets it again, and its record says so
            return False
        return not plan.splits and not plan.gaps

    def run_once(self) -> bool:
        """One batch, if there is one to run. False: nothing to do, or the job is not to run."""
        with self.turn:
            self._is_noted, self.retry_in_s = False, 0.0
            if self._tools.unrecorded.has(self._job_id):
                # To open the job again commits to its table. Nothing is committed before the store can be written.
                try_write(self._tools.store)
            try:
                has_more = self._run_once()
            except StoreError as error:
                self._note_unrecorded(error)
                raise
            self._tools.unrecorded.clear(self._job_id)
            return has_more

    def _run_once(self) -> bool:
        record = self._known = self.record()
        if record.state is JobState.PAUSED or record.is_final or self._halted.is_set():
            return False
        if record.is_waiting:
            self._let_go()  # It was resumed: it is opened anew, from what the table says.
        if self._open_job is not None and self._scale != record.batch_scale:
            self.goodbye()  # Batches are smaller from here on, or larger again.
            record = self._known = self.record()
        try:
            opened = self._open_job or self._open(record)
            return self._batch(opened)
        except (FencedError, RolledBackError) as error:
            self._let_go()
            kind = Fenced if isinstance(error, FencedError) else RolledBack
            record = self.apply(kind(message=redact(str(error)), at=self._now()))
            for watch in self._tools.watches:
                watch.fenced(record)
            self._tell_ended(record, outcome_of(error))
        except TableNotFoundError as error:
            self._let_go()
            self.apply(TargetGone(message=redact(str(error)), at=self._now()))
        except LadingError as error:
            if isinstance(error, UnknownOutcomeError | SchemaMismatchError):
                # Only a new start can tell what the table has, and writes for the table as it is.
                self._let_go(is_retry=True)
            return self._failed(error)
        except Exception as error:  # noqa: BLE001 - told in the record
            # Not foreseen, so nothing that is known in memory is believed: the next start asks the table. Without a
            # reason in its record the job would look healthy and load nothing.
            self._log.exception("an error that nobody foresaw", extra={"job": str(record.full_name)})
            self._let_go(is_retry=True)
            return self._failed(error)
        return False

    def _note_unrecorded(self, error: StoreError) -> None:
        """The store did not take what this turn had to write. Its record cannot say so; memory and counters do."""
        if self._is_noted:
            return
        self._is_noted = True
        self._tools.unrecorded.note(self._job_id, redact(error.what) + ".", self._now())
        if self._known is not None:
            for watch in self._tools.watches:
                watch.unrecorded(self._known)

    def _failed(self, error: Exception) -> bool:
        if isinstance(error, StoreError):
            self._note_unrecorded(error)
        task = self.record().task
        if self._halted.is_set() and task is not None and not isinstance(error, UnknownOutcomeError):
            self._tell_ended(self.apply(BatchCancelled(task_id=task.task_id, at=self._now())), "cancelled")
            return False
        task_id = task.task_id if task else None
        record = self.apply(BatchFailed(task_id=task_id, failure=failure_of(error, redact), at=self._now()))
        self._tell_ended(record, outcome_of(error))
        if record.state is JobState.PAUSED:
            self.goodbye()
            return False
        self.was_full = False
        self.retry_in_s = retry_delay_s(record.task.attempt - 1 if record.task else record.failures)
        return True  # Another attempt follows.

    def let_go(self) -> None:
        """Close what is open without a goodbye: the next start takes the job over."""
        with self.turn:
            self._let_go()

    def goodbye(self) -> None:
        """End cleanly: nobody is left to fence. Waits for the batch that is running."""
        with self.turn:
            opened = self._open_job
            if opened is not None and opened.coordinator.bill is not None:
                self.apply(Goodbye(head=opened.coordinator.bill.head, at=self._now()))
            self._let_go()

    def _let_go(self, *, is_retry: bool = False) -> None:
        opened, self._open_job = self._open_job, None
        self._is_retry = is_retry
        if opened is None:
            return
        try:
            opened.compiled.close()
        except Exception:  # noqa: BLE001 - told in the log; whatever the job was let go for is what its record must tell
            self._log.exception("a source could not be closed", extra={"job": opened.compiled.job.name})

    def apply(self, event: Event, audit: AuditEntry | None = None) -> JobRecord:
        """Change the record, again on top of whatever somebody else saved meanwhile; the audit in the same step."""
        return save_event(self._tools.store, self._job_id, event, audit)

    def _open(self, record: JobRecord) -> OpenJob:
        compiled, table = self._tools.compile(record)
        self._scale = record.batch_scale
        try:
            planner = Planner(compiled.source, self._tools.clock, on_data_loss=compiled.job.on_data_loss)
            stager = self._tools.make_stager(compiled)
            world = CoordinatorPorts(
                table=table,
                bills=table.bills,
                planner=planner,
                stager=stager,
                clock=self._tools.clock,
                new_token=new_token,
                followers=(self._tools.store,),
            )
            coordinator = Coordinator(compiled.job, world, self._tools.incarnation)
            # The commit of an edit that was cut off may still be under way: the takeover fences it.
            is_begun = has_begun(self._tools.store, self._job_id)
            goodbye, created = None if is_begun else record.goodbye, created_positions(self._tools.store, record)
            starting = coordinator.start(last_seen=record.last_seen, said_goodbye=goodbye, created_at=created)
            bill = run_steps(starting)
            check_not_cut_off(compiled.job, table.bills, bill, record.last_seen, is_begun=is_begun)
            if is_begun:
                drop_begun(self._tools.store, self._job_id)
        except BaseException:
            compiled.close()
            raise
        self._caretaker.opened(bill)
        opened = self._open_job = OpenJob(coordinator, compiled, table, planner, stager)
        self.on_open(opened, bill)
        offset = compiled.show_position(bill.positions)
        is_retry, self._is_retry = self._is_retry, False
        event = Opened(head=bill.head, totals=bill.totals, current_offset=offset, is_retry=is_retry, at=self._now())
        self.apply(event)
        return opened

    def _batch(self, opened: OpenJob) -> bool:
        if opened.compiled.stage is None and opened.compiled.can_learn_columns():
            # A file has come to learn the columns from: the job is opened anew. Nobody is left to fence.
            self.goodbye()
            opened = self._open(self.record())
        if opened.compiled.stage is None:
            self._nothing_to_do(opened)
            return False
        steps, task_id, since = opened.coordinator.run_batch(), 0, self._tools.clock.monotonic_s()
        is_sent = False
        self._began_s = since
        while True:
            try:
                name = next(steps)
            except StopIteration as stop:
                return self._done(opened, stop.value, task_id)
            since = self._tell_step(name, since)
            if name == "stage.before":
                started = self._started(opened)
                if started is None:
                    steps.close()
                    return False
                task_id = started
            if name == "commit.before" and self._halted.is_set() and not is_sent:
                # Nothing was sent: the bill that was written is read by nobody, the files are orphans.
                steps.close()
                self._tell_ended(self.apply(BatchCancelled(task_id=task_id, at=self._now())), "cancelled")
                return False
            # A commit whose answer was lost is tried again: from the first try on, it is settled and not cut off.
            is_sent = is_sent or name == "commit.before"
            failpoint(name)

    def _started(self, opened: OpenJob) -> int | None:
        record = self.record()
        if record.state is JobState.RUNNING and record.task is not None:
            return record.task.task_id  # Another attempt at the task that failed.
        try:
            shown, end = range_of(opened), opened.compiled.show_end()
            task = self.apply(BatchStarted(running_offset=shown, end_offset=end, at=self._now())).task
        except JobStateError:
            return None  # It was paused meanwhile.
        return task.task_id if task else None

    def _done(self, opened: OpenJob, bill: Bill | None, task_id: int) -> bool:
        compiled = opened.compiled
        if bill is None:
            self._nothing_to_do(opened)
            return False
        offset = compiled.show_position(bill.positions)
        record = self.apply(
            BatchCommitted(
                task_id=task_id,
                head=bill.head,
                tally=bill.tally,
                totals=bill.totals,
                first_bad_row=bill.first_error,
                current_offset=offset,
                end_offset=compiled.show_end() or offset,
                running_offset=range_of(opened, bill),
                at=self._now(),
            )
        )
        for watch in self._tools.watches:
            watch.committed(record, bill)
        self._tell_ended(record, "committed")
        self._teller.tell_now_and_then(compiled, record, bill)
        compiled.acknowledge(bill)
        self.on_progress(bill)
        self._remark_due_s = 0.0
        self.was_full = is_full(bill, compiled.job.limits, self._tools.clock.monotonic_s() - self._began_s)
        self._caretaker.committed(opened.table, bill)
        if compiled.is_once and all(state.finished for state in bill.positions.partitions.values()):
            self.apply(CaughtUp(at=self._now()))
            return False
        return True

    def _nothing_to_do(self, opened: OpenJob) -> None:
        bill, compiled, remark = opened.coordinator.bill, opened.compiled, ""
        survey = compiled.survey(bill.positions) if bill is not None and compiled.survey is not None else None
        if bill is not None:
            remark = compiled.remark(bill.positions) if survey is None else survey.remark
        record = self.apply(NothingToDo(end_offset=compiled.show_end(), remark=remark, at=self._now()))
        self._remark_due_s = self._tools.clock.monotonic_s() + REMARK_EVERY_S
        self.survey = survey
        if survey is not None:
            self._teller.tell(record, survey)

    def _tell_step(self, name: str, since: float) -> float:
        now = self._tools.clock.monotonic_s()
        step, _, side = name.partition(".")
        if side == "after" and self._tools.watches:
            record = self.record()
            for watch in self._tools.watches:
                watch.step(record, step, now - since)
        return now

    def _tell_ended(self, record: JobRecord, outcome: Outcome) -> None:
        seconds = max(0.0, self._tools.clock.monotonic_s() - self._began_s) if self._began_s else 0.0
        for watch in self._tools.watches:
            watch.batch_ended(record, outcome, seconds)

    def _now(self) -> datetime:
        return self._tools.clock.now()
