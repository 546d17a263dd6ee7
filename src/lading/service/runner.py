"""Running one job: the coordinator's steps, and what the job's record learns of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from lading.clock import Clock
from lading.commit.coordinator import Coordinator, World
from lading.errors import (
    FencedError,
    JobChangedError,
    JobStateError,
    LadingError,
    RolledBackError,
    TableNotFoundError,
    UnknownOutcomeError,
)
from lading.failpoints import failpoint
from lading.ids import Incarnation, JobId, new_token
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
from lading.jobs.transition import transition
from lading.model.bill import Bill
from lading.model.positions import Positions
from lading.plan.planner import Planner
from lading.service.compile import Compiled
from lading.sources.files.source import Survey
from lading.store.protocols import MetadataStore
from lading.tables.base import LakeTable
from lading.tables.care import CarePolicy

MakeStager = Callable[[Compiled], object]
Compile = Callable[[JobRecord], tuple[Compiled, LakeTable]]
MAX_SAVES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What every runner of a service shares."""

    store: MetadataStore
    clock: Clock
    incarnation: Incarnation
    compile: Compile
    make_stager: MakeStager
    care: CarePolicy = field(default_factory=CarePolicy)


class JobRunner:
    """One job in this incarnation. Used by one thread; `halt` may be called by any."""

    def __init__(self, job_id: JobId, tools: Tools, on_progress: Callable[[Bill], None] | None = None) -> None:
        self._job_id = job_id
        self._tools = tools
        self._on_progress = on_progress or (lambda bill: None)
        self._halted = threading.Event()
        self._coordinator: Coordinator | None = None
        self._compiled: Compiled | None = None
        self._table: LakeTable | None = None
        self._commits = 0

    def halt(self) -> None:
        """Stop before the next commit."""
        self._halted.set()

    def record(self) -> JobRecord:
        """The job as the store has it."""
        return self._tools.store.load_job_by_id(self._job_id).record

    def run_once(self) -> bool:
        """One batch, if there is one to run. False: nothing to do, or the job is not to run."""
        record = self.record()
        if record.state is JobState.PAUSED or record.is_final or self._halted.is_set():
            return False
        try:
            if self._coordinator is None:
                self._open(record)
            return self._batch()
        except (FencedError, RolledBackError) as error:
            self._coordinator = None
            kind = Fenced if isinstance(error, FencedError) else RolledBack
            self.apply(kind(message=str(error), at=self._now()))
        except TableNotFoundError as error:
            self.apply(TargetGone(message=str(error), at=self._now()))
        except LadingError as error:
            if isinstance(error, UnknownOutcomeError):
                self._coordinator = None  # Only a new start can tell what the table has.
            task = self.record().task
            self.apply(BatchFailed(task_id=task.task_id if task else None, failure=failure_of(error), at=self._now()))
            # Another attempt follows unless the job was paused by this one.
            return self.record().state is not JobState.PAUSED
        return False

    def goodbye(self) -> None:
        """End cleanly: nobody is left to fence."""
        coordinator = self._coordinator
        if coordinator is not None and coordinator.bill is not None:
            self.apply(Goodbye(head=coordinator.bill.head, at=self._now()))
            self._coordinator = None

    def apply(self, event: Event) -> JobRecord:
        """Change the record, again on top of whatever somebody else saved meanwhile."""
        store = self._tools.store
        for _ in range(MAX_SAVES):
            stored = store.load_job_by_id(self._job_id)
            record, actions = transition(stored.record, event)
            tasks = [action.task for action in actions if hasattr(action, "task")]
            try:
                return store.save_job(record, stored.version, tasks=tasks).record
            except JobChangedError:
                continue
        return store.save_job(record, stored.version, tasks=tasks).record

    def _open(self, record: JobRecord) -> None:
        compiled, table = self._tools.compile(record)
        world = World(
            table=table,
            bills=table.bills,
            planner=Planner(compiled.source, self._tools.clock),
            stager=self._tools.make_stager(compiled),  # type: ignore[arg-type]  # a Stager; the seam for other engines
            clock=self._tools.clock,
            new_token=new_token,
            followers=(self._tools.store,),
        )
        coordinator = Coordinator(compiled.job, world, self._tools.incarnation)
        steps = coordinator.start(last_seen=record.last_seen, said_goodbye=record.goodbye)
        bill = None
        while bill is None:
            try:
                failpoint(next(steps))
            except StopIteration as stop:
                bill = stop.value
        self._coordinator, self._compiled, self._table = coordinator, compiled, table
        offset = offset_of(bill.positions)
        self.apply(Opened(head=bill.head, totals=bill.totals, current_offset=offset, at=self._now()))

    def _batch(self) -> bool:
        coordinator, compiled, table = self._coordinator, self._compiled, self._table
        if coordinator is None or compiled is None or table is None:
            return False
        if compiled.stage is None:
            # No file was there to learn the columns from; look again next time.
            self._coordinator = None
            compiled_again, _ = self._tools.compile(self.record())
            if compiled_again.stage is None:
                self.apply(NothingToDo(at=self._now()))
                return False
            return True
        steps, task_id = coordinator.run_batch(), 0
        while True:
            try:
                name = next(steps)
            except StopIteration as stop:
                return self._done(stop.value, task_id)
            if name == "stage.before":
                started = self._started()
                if started is None:
                    steps.close()
                    return False
                task_id = started
            if name == "commit.before" and self._halted.is_set():
                # Nothing was sent: the bill that was written is read by nobody, the files are orphans.
                steps.close()
                self.apply(BatchCancelled(task_id=task_id, at=self._now()))
                return False
            failpoint(name)

    def _started(self) -> int | None:
        record = self.record()
        if record.state is JobState.RUNNING and record.task is not None:
            return record.task.task_id  # Another attempt at the task that failed.
        try:
            task = self.apply(BatchStarted(at=self._now())).task
        except JobStateError:
            return None  # It was paused meanwhile.
        return task.task_id if task else None

    def _done(self, bill: Bill | None, task_id: int) -> bool:
        coordinator, compiled = self._coordinator, self._compiled
        if coordinator is None or compiled is None or coordinator.bill is None:
            return False
        if bill is None:
            remark = late_remark(compiled.source.survey(coordinator.bill.positions))
            self.apply(NothingToDo(remark=remark, at=self._now()))
            return False
        self.apply(
            BatchCommitted(
                task_id=task_id,
                head=bill.head,
                tally=bill.tally,
                totals=bill.totals,
                first_bad_row=bill.first_error,
                current_offset=offset_of(bill.positions),
                end_offset=offset_of(bill.positions),
                at=self._now(),
            )
        )
        self._on_progress(bill)
        self._look_after()
        if compiled.is_once and all(state.finished for state in bill.positions.partitions.values()):
            self.apply(CaughtUp(at=self._now()))
            return False
        return True

    def _look_after(self) -> None:
        self._commits += 1
        if self._table is not None and self._commits % self._tools.care.every_commits == 0:
            self._table.look_after(self._job_id, self._tools.care, self._now())

    def _now(self) -> datetime:
        return self._tools.clock.now()


def late_remark(survey: Survey) -> str:
    """Files that appeared before the position, in words."""
    parts = []
    if survey.late_files:
        shown = ", ".join(survey.late_sample)
        parts.append(f"{survey.late_files} late files sort before the position and are not loaded: {shown}")
    if survey.lost_files:
        parts.append(f"at least {survey.lost_files} more appeared further back")
    return "; ".join(parts)


def offset_of(positions: Positions) -> str:
    """The position of a file job as Doris shows it."""
    at = next((state.at for state in positions.partitions.values()), "")
    return json.dumps({"fileName": at}, ensure_ascii=False) if at else ""
