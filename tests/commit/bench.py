"""One job with everything in memory, for tests of the coordinator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts
from lading.commit.steps import run_steps
from lading.ids import Incarnation, JobId, new_token
from lading.model.batch import BatchPlan, Limits, Report, StagedFile
from lading.model.bill import Bill, Head
from lading.model.job import Job
from lading.model.outcome import Outcome
from lading.plan.planner import Planner
from lading.tables.memory import MemoryBills, MemoryTable
from lading.testing.clock import ManualClock
from lading.testing.source import ScriptedSource
from lading.testing.stager import ScriptedStager

JOB = Job(
    job_id=JobId("11111111-2222-4333-8444-555555555555"), name="orders", start="TRIM_HORIZON", limits=Limits(rows=3)
)


class AnsweringTable(MemoryTable):
    """A table whose next answers are given by the test: each may land first, then answer something else."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[tuple[bool, Outcome]] = []

    def commit(self, expected: Head | None, staged: Sequence[StagedFile], bill: Bill) -> Outcome:
        if not self.answers:
            return super().commit(expected, staged, bill)
        lands, answer = self.answers.pop(0)
        if lands:
            super().commit(expected, staged, bill)
        return answer


class Editing:
    """A stager whose reports a test may change on their way."""

    def __init__(self, stager: ScriptedStager) -> None:
        self._stager = stager
        self.change: Callable[[list[Report]], list[Report]] = lambda reports: reports

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        return self.change(list(self._stager.stage(plan)))


@dataclass
class Follower:
    bills: list[Bill] = field(default_factory=list)

    def followed_seq(self, job_id: JobId) -> int | None:
        return self.bills[-1].seq if self.bills else None

    def follow(self, bill: Bill) -> None:
        self.bills.append(bill)


class Bench:
    """One job with everything in memory."""

    def __init__(self) -> None:
        self.table = AnsweringTable()
        self.bills = MemoryBills()
        self.source = ScriptedSource(Random(1), shards=2, knows_ends=True)
        self.stager = Editing(ScriptedStager(self.source, self.table.write_file, Random(2)))
        self.follower = Follower()
        self.job = JOB
        self.source.produce(20)

    def incarnation(self, **changes: object) -> Coordinator:
        world = CoordinatorPorts(
            table=self.table,
            bills=self.bills,
            planner=Planner(self.source, ManualClock()),
            stager=self.stager,
            clock=ManualClock(),
            new_token=new_token,
            followers=(self.follower,),
        )
        return Coordinator(replace(self.job, **changes), world, Incarnation(f"i-{new_token():x}"))  # type: ignore[arg-type]

    def started(self, **changes: object) -> Coordinator:
        coordinator = self.incarnation(**changes)
        run_steps(coordinator.start())
        return coordinator

    def head(self) -> Head | None:
        return self.table.read_head(JOB.job_id)

    def loaded(self) -> int:
        return len(self.table.rows())

    def expected(self) -> int:
        return sum(row.fate == "loaded" for shard in self.source.shards.values() for row in shard.rows)


@pytest.fixture
def bench() -> Bench:
    return Bench()
