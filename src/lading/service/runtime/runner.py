"""One job of a service: its loop, driven by a thread, with everything around it that is told or asked."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from lading.clock import Clock
from lading.commit.coordinator import Coordinator, CoordinatorPorts
from lading.commit.steps import Steps, run_steps
from lading.errors import (
    ConfigError,
    FencedError,
    JobChangedError,
    LadingError,
    SqlError,
    StageError,
    StoreError,
    TableError,
    TableNotFoundError,
)
from lading.ids import JobId, new_token
from lading.jobs.events import BatchWaits, Event, Halt, Rest, Retry, Run
from lading.jobs.record import JobRecord
from lading.jobs.tasks import TaskRecord
from lading.model.bill import Bill
from lading.plan.planner import Planner
from lading.service.compile.compiled import Compiled
from lading.service.runtime.caretaker import Caretaker
from lading.service.runtime.context import OpenJob, RunnerContext
from lading.service.runtime.evolving import evolve
from lading.service.runtime.file_surveys import SurveyTeller
from lading.service.runtime.job_loop import JobLoop, save_event
from lading.service.runtime.kept_columns import check_columns, keep_columns
from lading.service.runtime.loop_ports import LoopStore
from lading.service.runtime.starting import start_steps
from lading.service.runtime.store_health import try_write
from lading.service.security.redaction import redact
from lading.sources.kind import SourceSurvey
from lading.status.outcomes import Outcome
from lading.store.leases import is_lease_lost
from lading.store.protocols import MetadataStore
from lading.store.records import AuditEntry, StoredJob
from lading.tables.base import LakeTable

MAX_SAVES = 5
REMARK_EVERY_S = 60.0
"""How often an idle job looks at everything there is, to say what it passes over."""


class HeldStore:
    """The store as it is for the service that runs a job: it takes no change when another one has the job."""

    def __init__(self, store: MetadataStore, service_id: str | None) -> None:
        self._store = store
        self._service_id = service_id

    def load_job_by_id(self, job_id: JobId) -> StoredJob:
        return self._store.load_job_by_id(job_id)

    def save_job(
        self,
        record: JobRecord,
        expected_version: int,
        *,
        tasks: Iterable[TaskRecord] = (),
        audit: AuditEntry | None = None,
    ) -> StoredJob:
        return self._store.save_job(record, expected_version, tasks=tasks, audit=audit, held_by=self._service_id)


class JobRunner:
    """One job in this incarnation. One thread at a time works in it; `halt` may be called by any."""

    def __init__(self, job_id: JobId, tools: RunnerContext) -> None:
        self._job_id = job_id
        self._tools = tools
        self._loop = JobLoop[OpenJob](job_id, self)
        self.on_progress: Callable[[Bill], None] = lambda bill: None
        self.on_open: Callable[[OpenJob, Bill], None] = lambda opened, bill: None
        self._log = logging.getLogger("lading.jobs")
        self._halted = threading.Event()
        self.turn = threading.RLock()
        self._caretaker = Caretaker(tools.care, tools.clock, tools.store)
        self._known: JobRecord | None = None
        """The record as this incarnation last read it."""
        self._is_noted = False
        self._remark_due_s = 0.0
        self.is_cut_off = False
        """Whether the last `run` ended before this job had loaded what there was, because its time was over."""
        self._teller = SurveyTeller(tools.clock, tools.watches)
        self.survey: SourceSurvey | None = None
        """What was in the source besides, when it last had nothing to load."""

    @property
    def opened(self) -> OpenJob | None:
        """What is there while the job is open."""
        return self._loop.opened

    @property
    def was_full(self) -> bool:
        """Whether the last batch was cut off by a limit, so that more is there."""
        return isinstance(self._loop.next, Run)

    @property
    def retry_in_s(self) -> float:
        """How long to wait before the next attempt, after one that failed."""
        return self._loop.next.after_s if isinstance(self._loop.next, Retry) else 0.0

    @property
    def interval_s(self) -> float:
        """How long to wait after the source had nothing."""
        return self.opened.compiled.interval_s if self.opened else 10.0

    def halt(self) -> None:
        """Stop before the next commit, also a batch that is being staged. Returns at once; see `wait`."""
        self._halted.set()
        opened = self.opened
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
        return self._loop.record()

    def behind(self) -> str:
        """How much is still to be loaded, in words; empty when the job is not open or nobody can tell."""
        opened = self.opened
        if opened is None or opened.coordinator.bill is None:
            return ""
        source, positions = opened.compiled.source, opened.coordinator.bill.positions
        try:
            return source.survey(positions).behind if source.survey is not None else source.behind(positions)
        except LadingError:
            return ""  # The batch that follows says what is wrong.

    def look_everywhere(self) -> None:
        """Have the next batch look for everything there is, however long that takes."""
        opened = self.opened
        if opened is not None:
            opened.compiled.source.look_everywhere()

    def is_idle(self) -> bool:
        """Whether the source has nothing for an open job, as far as can be told without table and store.

        True promises that a batch would find nothing. A source that cannot be asked is not idle: the batch says why.
        """
        opened = self.opened
        if opened is None or opened.coordinator.bill is None:
            return False
        if self._tools.clock.monotonic_s() >= self._remark_due_s:
            return False
        if opened.table.is_watched():
            return False
        if opened.coordinator.teller.is_due(opened.coordinator.bill, self._tools.clock.now()):
            return False
        try:
            if opened.can_learn():
                return False
            if not opened.is_ready():
                return True
            plan = opened.planner.plan(opened.coordinator.bill.positions, opened.compiled.job.limits)
        except Exception:  # noqa: BLE001 - the batch that follows meets it again, and its record says so
            return False
        return not opened.coordinator.would_commit(plan)

    def run_once(self) -> bool:
        """One batch, if there is one to run. False: nothing to do, or the job is not to run."""
        with self.turn:
            self._is_noted = False
            if self._tools.unrecorded.has(self._job_id):
                # To open the job again commits to its table. Nothing is committed before the store can be written.
                try_write(self._tools.store)
            try:
                self._known = self.record()
                run_steps(self._loop.turn())
                self._write_repaired()
            except StoreError as error:
                self._note_unrecorded(error)
                raise
            self._tools.unrecorded.clear(self._job_id)
            going_on = self._loop.next
            return not going_on.is_drained if isinstance(going_on, Rest) else going_on is not None

    def _write_repaired(self) -> None:
        """Write down that commits were put back. Dies before: the log of the table still tells of it."""
        opened = self.opened
        while opened is not None and opened.coordinator.repaired:
            said = opened.coordinator.repaired.pop()
            self._log.warning("%s", said, extra={"job": self._job_id})
            facts = {"why": said, "todo": "Let other writers use a safe log store; see docs/engines.md."}
            for _ in range(MAX_SAVES):
                stored = self._tools.store.load_job_by_id(self._job_id)
                entry = AuditEntry(
                    at=self.clock.now(),
                    user="lading",
                    action="COMMIT AGAIN",
                    job_id=self._job_id,
                    subject=str(stored.record.full_name),
                    facts=facts,
                )
                with suppress(JobChangedError):  # Somebody changed the record meanwhile: read it again.
                    self.store.save_job(stored.record, stored.version, audit=entry)
                    break

    def apply(self, event: Event, audit: AuditEntry | None = None) -> JobRecord:
        """Change the record by a statement's word, and do what is to be done; the audit in the same step."""
        record, actions = save_event(self._tools.store, self._job_id, event, audit)
        if Halt() in actions:
            self.halt()  # The batch that runs gives its turn back.
        if actions:
            with self.turn:
                run_steps(self._loop.execute(actions))
        return record

    def let_go(self) -> None:
        """Close what is open without a goodbye: the next start takes the job over."""
        with self.turn:
            self._loop.let_go()

    def goodbye(self) -> None:
        """End cleanly: nobody is left to fence. Waits for the batch that is running."""
        with self.turn:
            try:
                run_steps(self._loop.goodbye())
            except FencedError as error:
                if not is_lease_lost(error):
                    raise
                self._loop.let_go()

    def try_goodbye(self) -> bool:
        """The same, unless a batch is running."""
        if not self.turn.acquire(blocking=False):
            return False
        try:
            self.goodbye()
        finally:
            self.turn.release()
        return True

    def _note_unrecorded(self, error: StoreError) -> None:
        """The store did not take what this turn had to write. Its record cannot say so; memory and counters do."""
        if self._is_noted:
            return
        self._is_noted = True
        self._tools.unrecorded.note(self._job_id, redact(error.what) + ".", self.clock.now())
        if self._known is not None:
            for watch in self._tools.watches:
                watch.unrecorded(self._known)

    # What the loop asks and tells.

    @property
    def store(self) -> LoopStore:
        return HeldStore(self._tools.store, self._tools.service_id())

    @property
    def clock(self) -> Clock:
        return self._tools.clock

    def compile(self, record: JobRecord) -> OpenJob:
        try:
            compiled, table = self._compiled(record)
        except TableNotFoundError as error:
            if not self._tools.has_others():
                raise
            # The job is not ended: another service may have the table.
            todo = "Put the table where all services that share the store find it; see docs/several-services.md."
            raise TableError(error.what, left="Nothing was read.", todo=todo) from error
        try:
            planner = Planner(
                compiled.source.driver,
                self.clock,
                on_data_loss=compiled.job.on_data_loss,
                is_narrow=record.batch_scale < 1,
                poison=record.pace.poison,
            )
            stager = self._tools.make_stager(compiled)
        except BaseException:
            compiled.close()
            raise
        ports = CoordinatorPorts(
            table=table,
            bills=table.bills,
            planner=planner,
            stager=stager,
            merger=stager if compiled.stage is not None and compiled.stage.state is not None else None,
            joins=compiled.joins,
            clock=self.clock,
            new_token=new_token,
            followers=(self._tools.store,),
            listeners=self._tools.make_listeners(record, compiled, table),
        )
        return OpenJob(Coordinator(compiled.job, ports, self._tools.incarnation), compiled, table, planner, stager)

    def _compiled(self, record: JobRecord) -> tuple[Compiled, LakeTable]:
        store = self._tools.store
        try:
            compiled, table = self._tools.compile(record)
        except (ConfigError, SqlError):
            # Perhaps because of what somebody did to the table: then that is to be told.
            check_columns(store, record, self._tools.open_target(record).schema())
            raise
        try:
            check_columns(store, record, table.schema())
            keep_columns(store, record, compiled, table.schema())
        except BaseException:
            compiled.close()
            raise
        return compiled, table

    def start(self, job: OpenJob, record: JobRecord) -> Steps[Bill]:
        if (service_id := self._tools.service_id()) is not None:
            # To open a job commits to its table, which would fence the service that has it.
            self._tools.store.check_lease(record.job_id, service_id)
        return start_steps(self._tools.store, record, job.coordinator, job.table.bills)

    def is_halted(self) -> bool:
        return self._halted.is_set()

    def redact(self, text: str) -> str:
        return redact(text)

    def tell_opened(self, job: OpenJob, bill: Bill) -> None:
        self._caretaker.opened(bill)
        self.on_open(job, bill)

    def committed(self, job: OpenJob, record: JobRecord, bill: Bill) -> None:
        for watch in self._tools.watches:
            watch.committed(record, bill)
        self._teller.tell_now_and_then(job.compiled, record, bill)
        job.compiled.source.acknowledge(bill)
        self.on_progress(bill)
        self._remark_due_s = 0.0
        self._caretaker.committed(job.table, bill)

    def evolve(self, job: OpenJob, record: JobRecord, unseen: StageError) -> None:
        evolve(self._tools, self.store, job.table, record, unseen)

    def remark(self, job: OpenJob) -> str:
        bill, source = job.coordinator.bill, job.compiled.source
        self.survey = source.survey(bill.positions) if bill is not None and source.survey is not None else None
        if bill is None:
            return ""
        return source.behind(bill.positions) if self.survey is None else self.survey.remark

    def tell_drained(self, record: JobRecord) -> None:
        self._remark_due_s = self.clock.monotonic_s() + REMARK_EVERY_S
        if self.survey is not None:
            self._teller.tell(record, self.survey)

    def tell_step(self, name: str, since_s: float) -> None:
        step, _, side = name.partition(".")
        if side == "after" and self._tools.watches:
            record = self.record()
            for watch in self._tools.watches:
                watch.step(record, step, self.clock.monotonic_s() - since_s)

    def tell_waiting(self, message: str) -> None:
        """The batch that runs waits for something outside. From another thread than that of the turn."""
        if message:
            self._log.warning("%s", message, extra={"job": self._job_id})
        try:
            save_event(self.store, self._job_id, BatchWaits(message=message, at=self.clock.now()))
        except LadingError as error:
            # Of another service by now, or the store is away. The turn that runs meets it as well, and says so.
            self._log.warning("what a batch waits for could not be written down: %s", error)

    def tell_ended(self, record: JobRecord, outcome: Outcome, seconds: float) -> None:
        for watch in self._tools.watches:
            watch.batch_ended(record, outcome, seconds)

    def tell_fenced(self, record: JobRecord) -> None:
        for watch in self._tools.watches:
            watch.fenced(record)

    def tell_error(self, error: Exception) -> None:
        if isinstance(error, StoreError):
            self._note_unrecorded(error)
        elif not isinstance(error, LadingError):
            self._log.error("an error that nobody foresaw", exc_info=error, extra={"job": self._job_id})
