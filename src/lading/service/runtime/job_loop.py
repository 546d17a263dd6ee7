"""The turns of one job in one incarnation: its coordinator and its record, one step after the other.

Nothing is decided here. What happened is told to `transition` as an event, and what it returns is done by `execute`.
There is no Spark, no SQL and no thread in it either: the simulator drives this code as the service does, and may stop
it at every step.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Generic, assert_never

from lading.commit.steps import Steps
from lading.errors import (
    LINES_IN_FIELDS,
    UNSEEN_COLUMNS,
    FencedError,
    JobChangedError,
    JobStateError,
    RolledBackError,
    StageError,
    TableNotFoundError,
)
from lading.errors import UnknownOutcomeError as Unknown
from lading.ids import JobId
from lading.jobs.actions import Action, Halt, LetGo, Rest, Retry, Run, SaveTask
from lading.jobs.events import (
    BatchCancelled,
    BatchCommitted,
    BatchFailed,
    BatchStarted,
    CaughtUp,
    Event,
    Fenced,
    Goodbye,
    ListenersTold,
    NothingToDo,
    Opened,
    RolledBack,
    TargetGone,
    TurnBegun,
    bill_facts,
)
from lading.jobs.reasons import failure_of
from lading.jobs.record import JobRecord
from lading.jobs.transition import transition
from lading.model.bill import Bill
from lading.model.notices import ListeningSummary
from lading.service.runtime.loop_ports import J, LoopPorts, LoopStore
from lading.status.outcomes import outcome_of
from lading.store.leases import is_lease_lost
from lading.store.records import AuditEntry, StoredJob

MAX_SAVES = 20


def save_event(
    store: LoopStore, job_id: JobId, event: Event, audit: AuditEntry | None = None
) -> tuple[JobRecord, tuple[Action, ...]]:
    """Change the record of a job on top of what somebody else saved meanwhile; tasks and audit in the same step."""
    stored, actions = _save(store, job_id, event, audit, None)
    return stored.record, actions


def _save(
    store: LoopStore, job_id: JobId, event: Event, audit: AuditEntry | None, known: StoredJob | None
) -> tuple[StoredJob, tuple[Action, ...]]:
    """`known` is the record as it was last seen: the store takes a change of it only while nobody changed it since.

    What changes nothing, or cannot be, is asked of the store itself, since nothing would show that it is old.
    """
    if known is not None:
        try:
            record, actions = transition(known.record, event)
            tasks = [action.task for action in actions if isinstance(action, SaveTask)]
            if record != known.record or tasks:
                return store.save_job(record, known.version, tasks=tasks, audit=audit), actions
        except (JobChangedError, JobStateError):
            pass  # It is read again.
    for left in range(MAX_SAVES, -1, -1):
        stored = store.load_job_by_id(job_id)
        record, actions = transition(stored.record, event)
        tasks = [action.task for action in actions if isinstance(action, SaveTask)]
        if record == stored.record and not tasks and audit is None:
            return stored, actions
        try:
            return store.save_job(record, stored.version, tasks=tasks, audit=audit), actions
        except JobChangedError:
            if not left:
                raise
    raise AssertionError


class JobLoop(Generic[J]):
    """One job in this incarnation. One at a time works in it."""

    def __init__(self, job_id: JobId, ports: LoopPorts[J]) -> None:
        self.job_id = job_id
        self.opened: J | None = None
        self.next: Run | Retry | Rest | None = None
        """What comes after the last turn. None: nothing, before somebody says so."""
        self.known: StoredJob | None = None
        """The record as this turn last read or wrote it. Others may have changed it since."""
        self._ports = ports
        self._scale = 1.0
        self._is_retry = False
        self._began_s = 0.0
        self._shown_listening: ListeningSummary | None = None
        """What the record says of the listeners."""

    def turn(self) -> Steps[None]:
        """One batch, if there is one to run. `next` then says how it goes on."""
        self.next = None
        if self._ports.is_halted():
            return
        try:
            yield from self._turn()
        except FencedError as error:
            if not is_lease_lost(error):
                raise
            # Another service has the job and its record.
            self._ports.tell_error(error)
            self.let_go()
            self.next = None

    def _turn(self) -> Steps[None]:
        yield from self.tell(TurnBegun(at=self._now()))
        if not isinstance(self.next, Run):
            return
        try:
            yield from self._work()
        except Exception as error:
            if is_lease_lost(error):
                raise
            # Without a reason in its record the job would look healthy and load nothing.
            self._ports.tell_error(error)
            yield from self._report(error)

    def tell(self, event: Event) -> Steps[JobRecord]:
        """Tell what happened, and do what is to be done."""
        yield "record.before"
        # A turn begins with the record as it is, and goes on with what it wrote itself.
        known = None if isinstance(event, TurnBegun) else self.known
        self.known, actions = _save(self._ports.store, self.job_id, event, None, known)
        record = self.known.record
        yield "record.after"
        yield from self.execute(actions)
        return record

    def execute(self, actions: Iterable[Action]) -> Steps[None]:
        """Do what `transition` said, each action in its turn."""
        for action in actions:
            match action:
                case SaveTask():
                    pass  # Kept in the same step as the record; see `save_event`.
                case Run():
                    if self.opened is not None and self._scale != action.scale:
                        # Batches are smaller from here on, or larger again; an open task goes on with them.
                        yield from self.goodbye()
                        self._is_retry = True
                    self._scale, self.next = action.scale, action
                case Retry() | Rest():
                    self.next = action
                case LetGo():
                    self.let_go(is_retry=action.is_retry)
                case Halt():
                    self.next = None
                    yield from self.goodbye()
                case _:
                    assert_never(action)

    def goodbye(self) -> Steps[None]:
        """End cleanly: nobody is left to fence."""
        bill = self.opened.coordinator.bill if self.opened is not None else None
        if bill is not None:
            yield from self.tell(Goodbye(head=bill.head, at=self._now()))
        self.let_go()

    def let_go(self, *, is_retry: bool = False) -> None:
        """Close what is open without a goodbye: the next start takes the job over."""
        opened, self.opened, self._is_retry = self.opened, None, is_retry
        if opened is not None:
            opened.close()

    def record(self) -> JobRecord:
        """The job as the store has it."""
        self.known = self._ports.store.load_job_by_id(self.job_id)
        return self.known.record

    def _work(self) -> Steps[None]:
        opened = self.opened or (yield from self._open())
        if opened.can_learn():
            # A file has come to learn the columns from: the job is opened again. Nobody is left to fence.
            yield from self.goodbye()
            opened = yield from self._open()
        if not isinstance(self.next, Run):
            return  # It was paused meanwhile.
        if opened.is_ready() or self._is_listener_due(opened):
            yield from self._batch(opened)
        else:
            yield from self._nothing_to_do(opened)
        if self.opened is opened and self.next is not None and opened.coordinator.teller.owes_answers:
            # The next bill says that listeners were told. Until then a restart would tell them again.
            yield from self._batch(opened)
        if self.opened is opened:
            yield from self._show_listeners(opened)

    def _is_listener_due(self, opened: J) -> bool:
        bill = opened.coordinator.bill
        return bill is not None and opened.coordinator.teller.is_due(bill, self._now())

    def _show_listeners(self, opened: J) -> Steps[None]:
        status = opened.coordinator.teller.status(opened.coordinator.bill)
        if status != self._shown_listening:
            yield from self.tell(ListenersTold(listening=status, at=self._now()))
            self._shown_listening = status

    def _open(self) -> Steps[J]:
        record = self.record()
        job = self._ports.compile(record)
        try:
            bill = yield from self._ports.start(job, record)
        except BaseException:
            job.close()
            raise
        # As large as the record was now: another life may have changed it since this turn began.
        self.opened, self._shown_listening, self._scale = job, record.listening, record.batch_scale
        self._ports.tell_opened(job, bill)
        is_retry, self._is_retry = self._is_retry, False
        shown, at = job.shown(bill), self._now()
        yield from self.tell(Opened(**bill_facts(bill), current_offset=shown, is_retry=is_retry, at=at))
        is_to_be_smaller = self.opened is None and isinstance(self.next, Run)
        return (yield from self._open()) if is_to_be_smaller else job

    def _batch(self, opened: J) -> Steps[None]:
        steps, task_id, is_sent, bill = opened.coordinator.run_batch(), 0, False, None
        self._began_s = since_s = self._ports.clock.monotonic_s()
        while True:
            try:
                name = next(steps)
            except StopIteration as stop:
                bill = stop.value
                break
            except StageError as unseen:
                if unseen.code == LINES_IN_FIELDS:
                    # Nothing is durable but staged files that nobody names. The same files are planned again, uncut.
                    opened.read_uncut()
                    yield from self._batch(opened)
                    return
                if unseen.code != UNSEEN_COLUMNS:
                    raise
                yield from self._evolve(opened, unseen)
                return
            self._ports.tell_step(name, since_s)
            since_s = self._ports.clock.monotonic_s()
            if name == "stage.before":
                try:
                    record = yield from self._begin_task(opened)
                except JobStateError:
                    self.next = None  # It was paused meanwhile.
                    steps.close()
                    return
                task_id = record.task.task_id if record.task else 0
                is_sent = False  # What was sent before this was a commit without rows, and is settled.
            if name == "commit.before" and self._ports.is_halted() and not is_sent:
                # Nothing was sent: the bill that was written is read by nobody, the files are orphans.
                steps.close()
                yield from self._cancelled(task_id)
                return
            # A commit whose answer was lost is tried again: from the first try on, it is settled and not cut off.
            is_sent = is_sent or name == "commit.before"
            yield name
        if bill is None:
            yield from self._nothing_to_do(opened)
        else:
            yield from self._committed(opened, bill, task_id)

    def _evolve(self, opened: J, unseen: StageError) -> Steps[None]:
        yield "evolve.before"
        # Dies after it: the table has columns that no row fills yet. The position is unchanged: the next start reads
        # the same rows, and finds the columns there.
        self._ports.evolve(opened, self.record(), unseen)
        yield "evolve.after"
        # Opened again for the table as it is now; the task goes on, and stages the same rows once more.
        yield from self.goodbye()
        self._is_retry = True
        yield from self._batch((yield from self._open()))

    def _begin_task(self, opened: J) -> Steps[JobRecord]:
        shown, end, facts = opened.shown_range(), opened.shown_end(), opened.coordinator.plan_facts()
        event = BatchStarted(running_offset=shown, end_offset=end, **facts, at=self._now())
        # Dies after it: the next life finds the task open, and plans a smaller batch if this one committed nothing.
        return (yield from self.tell(event))

    def _committed(self, opened: J, bill: Bill, task_id: int) -> Steps[None]:
        shown, seconds = opened.shown(bill), self._seconds()
        event = BatchCommitted(
            task_id=task_id,
            **bill_facts(bill),
            tally=bill.tally,
            first_bad_row=bill.first_error,
            current_offset=shown,
            end_offset=opened.shown_end() or shown,
            running_offset=opened.shown_range(bill),
            was_full=opened.is_full(bill, seconds),
            at=self._now(),
        )
        record = yield from self.tell(event)
        self._ports.tell_ended(record, "committed", seconds)
        self._ports.committed(opened, record, bill)
        if opened.is_complete(bill):
            yield from self.tell(CaughtUp(at=self._now()))

    def _nothing_to_do(self, opened: J) -> Steps[None]:
        remark = self._ports.remark(opened)
        event = NothingToDo(end_offset=opened.shown_end(), remark=remark, at=self._now())
        self._ports.tell_drained((yield from self.tell(event)))
        # The process may have ended between the last commit and this: nobody else would say that the job is done.
        if (bill := opened.coordinator.bill) is not None and opened.is_complete(bill):
            yield from self.tell(CaughtUp(at=self._now()))

    def _cancelled(self, task_id: int, *, is_unsure: bool = False) -> Steps[None]:
        self.next = None
        record = yield from self.tell(BatchCancelled(task_id=task_id, is_unsure=is_unsure, at=self._now()))
        self._ports.tell_ended(record, "cancelled", self._seconds())

    def _report(self, error: Exception) -> Steps[None]:
        task, failure, now = self.record().task, failure_of(error, self._ports.redact), self._now()
        message = self._ports.redact(str(error))
        event: Event
        match error:
            case FencedError():
                event = Fenced(message=message, at=now)
            case RolledBackError():
                event = RolledBack(message=message, at=now)
            case TableNotFoundError():
                event = TargetGone(message=message, at=now)
            case _ if task is not None and self._ports.is_halted() and not isinstance(error, Unknown):
                yield from self._cancelled(task.task_id, is_unsure=failure.is_unsure)
                return
            case _:
                event = BatchFailed(task_id=task.task_id if task else None, failure=failure, at=now)
        record = yield from self.tell(event)
        if isinstance(event, Fenced | RolledBack):
            self._ports.tell_fenced(record)
        if not isinstance(event, TargetGone):
            self._ports.tell_ended(record, outcome_of(error), self._seconds())

    def _seconds(self) -> float:
        return max(0.0, self._ports.clock.monotonic_s() - self._began_s) if self._began_s else 0.0

    def _now(self) -> datetime:
        return self._ports.clock.now()
