"""One incarnation's runner of a job, with a world in memory around it instead of Spark, tables and threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from lading.commit.coordinator import Coordinator
from lading.commit.steps import Steps
from lading.errors import StageError
from lading.ids import Incarnation
from lading.jobs.record import JobRecord
from lading.model.batch import BatchPlan, Report
from lading.model.bill import Bill
from lading.service.runtime.caretaker import Caretaker
from lading.service.runtime.job_loop import JobLoop
from lading.service.runtime.starting import start_steps
from lading.status.outcomes import Outcome
from lading.tables.maintenance import CarePolicy
from lading.testing.clock import ManualClock
from lading.testing.memory_store import MemoryStore
from lading.testing.stager import ScriptedStager

if TYPE_CHECKING:
    from lading.testing.runner_world import RunnerWorld

CARE = CarePolicy(every_commits=5, keep_commits=3)


class WatchedStager(ScriptedStager):
    """Tells the world what is staged."""

    runner: Runner

    def stage(self, plan: BatchPlan) -> list[Report]:
        self.runner.world.check_staging(self.runner, plan)
        return list(super().stage(plan))


@dataclass(slots=True)
class SimulatedJob:
    """A job that is open in one incarnation."""

    coordinator: Coordinator
    rows: int

    def is_ready(self) -> bool:
        return True

    def can_learn(self) -> bool:
        return False

    def read_uncut(self) -> None:
        """Its splits are not cut."""

    def shown(self, bill: Bill) -> str:
        return str(bill.seq)

    def shown_range(self, bill: Bill | None = None) -> str:
        return ""

    def shown_end(self) -> str:
        return ""

    def is_full(self, bill: Bill, seconds: float) -> bool:
        return bill.tally.rows.total >= self.rows

    def is_complete(self, bill: Bill) -> bool:
        return False

    def close(self) -> None:
        """Nothing is held."""


@dataclass(slots=True)
class Runner:
    """One incarnation's runner of the job, and what it is doing now."""

    world: RunnerWorld
    incarnation: Incarnation
    loop: JobLoop[SimulatedJob] = field(init=False)
    work: Steps[None] | None = None
    is_cut_off: bool = False
    due_s: float = 0.0
    began_s: float = 0.0
    error: Exception | None = None
    """What the turn that runs met."""
    has_opened: bool = False
    caretaker: Caretaker = field(init=False)

    def __post_init__(self) -> None:
        self.loop = JobLoop(self.world.job_id, self)
        self.caretaker = Caretaker(CARE, self.clock, cast("Any", self.store))

    def forget(self) -> None:
        """Begin again with the job, as a service does that has forgotten its runner."""
        self.loop, self.is_cut_off = JobLoop(self.world.job_id, self), False

    @property
    def coordinator(self) -> Coordinator | None:
        return self.loop.opened.coordinator if self.loop.opened is not None else None

    # What the loop asks and tells.

    @property
    def store(self) -> MemoryStore:
        return self.world.records

    @property
    def clock(self) -> ManualClock:
        return self.world.clock

    def compile(self, record: JobRecord) -> SimulatedJob:
        return self.world.compile(self, record)

    def start(self, job: SimulatedJob, record: JobRecord) -> Steps[Bill]:
        return start_steps(self.store, record, job.coordinator, self.world.bills)

    def is_halted(self) -> bool:
        return self.is_cut_off

    def redact(self, text: str) -> str:
        return text

    def tell_opened(self, job: SimulatedJob, bill: Bill) -> None:
        self.caretaker.opened(bill)
        self.world.note_opened(bill, is_first=not self.has_opened)
        self.has_opened = True

    def tell_step(self, name: str, since_s: float) -> None: ...

    def tell_ended(self, record: JobRecord, outcome: Outcome, seconds: float) -> None:
        self.world.check_ended(self, record, outcome)

    def tell_fenced(self, record: JobRecord) -> None: ...

    def tell_error(self, error: Exception) -> None:
        self.error = error
        self.world.check_cause(self, error)

    def committed(self, job: SimulatedJob, record: JobRecord, bill: Bill) -> None:
        self.world.counts.commits += 1
        self.world.deaths = 0
        self.caretaker.committed(cast("Any", self.world), bill)

    def evolve(self, job: SimulatedJob, record: JobRecord, unseen: StageError) -> None:
        """Its rows have no other fields."""
        raise unseen

    def remark(self, job: SimulatedJob) -> str:
        return ""

    def tell_drained(self, record: JobRecord) -> None:
        self.world.tries = 0
