"""One job of a service: its loop, driven by a thread, with everything around it that is told or asked."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from lading.clock import Clock
from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts
from lading.commit.protocols import Stager
from lading.commit.steps import Steps, run_steps
from lading.errors import (
    BudgetError,
    FencedError,
    LadingError,
    StageError,
    StoreError,
    TableError,
    TableNotFoundError,
)
from lading.ids import JobId, new_token
from lading.jobs.actions import Halt, Rest, Retry, Run
from lading.jobs.events import BadRowsCopied, BatchWaits, Event
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.plan.planner import Planner
from lading.service.compile.compiled import Compiled
from lading.service.runtime.caretaker import Caretaker
from lading.service.runtime.context import CancellableStager, OpenJob, RunnerContext
from lading.service.runtime.evolving import evolve
from lading.service.runtime.file_surveys import SurveyTeller
from lading.service.runtime.held_store import HeldStore, write_audit
from lading.service.runtime.job_loop import JobLoop, save_event
from lading.service.runtime.kept_columns import compile_checked
from lading.service.runtime.loop_ports import LoopStore
from lading.service.runtime.refused import keep_refused
from lading.service.runtime.searching import SearchingStager, SearchTools
from lading.service.runtime.starting import held_steps, start_steps
from lading.service.runtime.store_health import try_write
from lading.service.security.redaction import redact
from lading.sources.kind import SourceSurvey
from lading.status.outcomes import Outcome
from lading.store.leases import is_lease_lost
from lading.store.records import AuditEntry
from lading.tables.base import LakeTable

REMARK_EVERY_S = 60.0
"""How often an idle job looks at everything there is, to say what it passes over."""


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

    def known(self) -> JobRecord | None:
        """The record as this incarnation last read or wrote it. Others may have changed it since."""
        return self._loop.known.record if self._loop.known is not None else None

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
        if opened.errors is not None and opened.errors.is_due():
            return False
        try:
            if opened.can_learn():
                return False
            if not opened.is_ready():
                return True
            plan = opened.planner.plan_ahead(opened.coordinator.bill.positions, opened.compiled.job.limits)
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
            self._write_audit("COMMIT AGAIN", facts)

    def _write_audit(self, action: str, facts: Mapping[str, str]) -> None:
        write_audit(self.store, self._job_id, action, facts, self.clock.now())

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
        if (known := self.known()) is not None:
            for watch in self._tools.watches:
                watch.unrecorded(known)

    # What the loop asks and tells.

    @property
    def store(self) -> LoopStore:
        return HeldStore(self._tools.store, self._tools.service_id())

    @property
    def clock(self) -> Clock:
        return self._tools.clock

    def compile(self, record: JobRecord) -> OpenJob:
        try:
            compiled, table = compile_checked(self._tools, record)
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
            stager=self._searching(compiled, table, stager),
            merger=stager if compiled.stage is not None and compiled.stage.state is not None else None,
            joins=compiled.joins,
            clock=self.clock,
            new_token=new_token,
            followers=(self._tools.store,),
            listeners=self._tools.make_listeners(record, compiled, table),
        )
        errors = self._tools.make_errors(record, table)
        return OpenJob(
            Coordinator(compiled.job, ports, self._tools.incarnation), compiled, table, planner, stager, errors
        )

    def _searching(self, compiled: Compiled, table: LakeTable, stager: CancellableStager) -> Stager:
        if compiled.source.inside is None:
            return stager
        tools = SearchTools(
            inside=compiled.source.inside,
            deaths=lambda: self.record().pace.suspect_deaths,
            discard=table.discard,
            tell=self.tell_waiting,
            wait=self._halted.wait,
        )
        return SearchingStager(stager, tools)

    def start(self, job: OpenJob, record: JobRecord) -> Steps[Bill]:
        bill = yield from held_steps(
            start_steps(self._tools.store, record, job.coordinator, job.table.bills),
            self._check_lease,
        )
        self._copy_errors(job, bill)
        return bill

    def _check_lease(self) -> None:
        if (service_id := self._tools.service_id()) is not None:
            self._tools.store.check_lease(self._job_id, service_id)

    def _copy_errors(self, job: OpenJob, bill: Bill) -> None:
        """Copy bad rows to the errors table. Dies in here: the next start goes on with it."""
        if job.errors is not None and job.errors.copy(bill, self._halted.is_set):
            save_event(self.store, self._job_id, BadRowsCopied(copied=job.errors.summary, at=self.clock.now()))

    def is_halted(self) -> bool:
        return self._halted.is_set()

    def redact(self, text: str) -> str:
        return redact(text)

    def tell_opened(self, job: OpenJob, bill: Bill) -> None:
        self._caretaker.opened(bill)
        self._acknowledge(job, bill)  # Who committed it may have died before it could.
        self.on_open(job, bill)

    def committed(self, job: OpenJob, record: JobRecord, bill: Bill) -> None:
        for watch in self._tools.watches:
            watch.committed(record, bill)
        self._teller.tell_now_and_then(job.compiled, record, bill)
        self._acknowledge(job, bill)
        self.on_progress(bill)
        self._remark_due_s = 0.0
        if (planned := job.coordinator.planned) is not None and planned.passes_over:
            # Dies before: the bill and its quarantine tell of it.
            self._write_audit("QUARANTINE", {"what": str(planned.least), "why": planned.splits[0].poison})
        self._copy_errors(job, bill)
        self._caretaker.committed(job.table, bill, job.errors.needs_from if job.errors is not None else None)

    def _acknowledge(self, job: OpenJob, bill: Bill) -> None:
        """Tell the source. Nothing refuses it from one that was stopped, and it would set back what others told."""
        if self._tools.surely_holds(self._job_id):
            job.compiled.source.acknowledge(bill)

    def evolve(self, job: OpenJob, record: JobRecord, unseen: StageError) -> None:
        evolve(self._tools, self.store, job.table, record, unseen)

    def remark(self, job: OpenJob) -> str:
        bill, source = job.coordinator.bill, job.compiled.source
        self.survey = source.survey(bill.positions) if bill is not None and source.survey is not None else None
        if bill is None:
            return ""
        if job.errors is not None and job.errors.is_due():
            self._copy_errors(job, bill)
        return source.behind(bill.positions) if self.survey is None else self.survey.remark

    def tell_drained(self, record: JobRecord) -> None:
        self._remark_due_s = self.clock.monotonic_s() + REMARK_EVERY_S
        if self.survey is not None:
            self._teller.tell(record, self.survey)

    def tell_step(self, name: str, since_s: float) -> None:
        step, _, side = name.partition(".")
        if side == "after" and self._tools.watches:
            record = self.known() or self.record()
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
        elif isinstance(error, BudgetError):
            keep_refused(self._tools.store, self._job_id, error, self.clock.now())
        elif isinstance(error, FencedError):
            self._log.warning("fenced: %s", error, extra={"job": self._job_id})
        elif not isinstance(error, LadingError):
            self._log.error("an error that nobody foresaw", exc_info=error, extra={"job": self._job_id})
