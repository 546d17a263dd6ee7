"""Driving a table through commits: bills by hand, and a coordinator whose source is a counter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from lading.commit.check import advance
from lading.commit.coordinator import Coordinator
from lading.commit.next_bill import Stamp, draft_load, draft_opening, draft_takeover
from lading.commit.ports import CoordinatorPorts
from lading.commit.steps import run_steps
from lading.ids import Incarnation, JobId, NewToken, Token, new_job_id, new_token
from lading.model.batch import BatchPlan, Limits, Report, Split, StagedFile
from lading.model.bill import Bill, Head
from lading.model.job import Job
from lading.model.outcome import Outcome
from lading.model.positions import PartitionState, Positions
from lading.model.table import Column, TableSpec
from lading.model.tally import RowCounts
from tests.tables.rig import Rig, RigTable

START = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = TableSpec(columns=(Column(name="id", type="bigint"), Column(name="name", type="string")))
PARTITION = "p"


def some_rows(first: int, count: int) -> pa.Table:
    """Rows that tell where they came from."""
    ids = list(range(first, first + count))
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array([f"row {number}" for number in ids])})


def new_job(name: str = "clicks") -> Job:
    return Job(job_id=new_job_id(), name=name)


def stamp(token: Token | None = None, *, at: datetime = START, version: int | None = None) -> Stamp:
    return Stamp(
        token=token or new_token(),
        incarnation=Incarnation("tests"),
        planned_at=at,
        billed_at=at,
        table_version=version,
    )


def opening(job: Job, positions: Positions | None = None, *, token: Token | None = None) -> Bill:
    start = positions or Positions(partitions={PARTITION: PartitionState(at="0")})
    return draft_opening(job, start, stamp(token))


def load(
    job: Job, base: Bill, files: Sequence[StagedFile], *, token: Token | None = None, at: datetime = START
) -> Bill:
    """The bill of a batch with these files, on top of another bill."""
    rows = sum(file.rows for file in files)
    position = base.positions.partitions[PARTITION].at
    end = str(int(position) + rows)
    plan = BatchPlan(positions=base.positions, splits=(Split(number=0, partition=PARTITION, start=position, end=end),))
    report = Report(
        split=0,
        partition=PARTITION,
        start=position,
        end=end,
        files=tuple(files),
        rows=RowCounts(total=rows, loaded=rows),
    )
    return draft_load(job, base, plan, [report], advance(plan, [report]), stamp(token, at=at))


def takeover(job: Job, base: Bill) -> Bill:
    return draft_takeover(job, base, stamp())


def put_and_commit(table: RigTable, bill: Bill) -> Outcome:
    """Steps 4 and 5."""
    table.bills.put(bill)
    return table.commit(bill.replaces, bill.files, bill)


@dataclass(slots=True, kw_only=True)
class Ticking:
    """A clock that goes on by a second at every look."""

    at: datetime = START

    def now(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at

    def monotonic_s(self) -> float:
        return self.at.timestamp()

    def passed_s(self) -> float:
        return self.at.timestamp()

    def sleep(self, delay_s: float) -> None:
        self.at += timedelta(seconds=delay_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingPlanner:
    """The source is the whole numbers; a batch is the next few of them."""

    rows: int = 3

    def open(self, start: str) -> Positions:
        return Positions(partitions={PARTITION: PartitionState(at="0")})

    def take_in(self, base: Positions) -> Positions:
        return base

    def plan(self, base: Positions, limits: Limits) -> BatchPlan:
        at = base.partitions[PARTITION].at
        split = Split(number=0, partition=PARTITION, start=at, end=str(int(at) + self.rows))
        return BatchPlan(positions=base, splits=(split,))


@dataclass(slots=True, kw_only=True)
class RigStager:
    """Stages the numbers of a split with the real writer."""

    rig: Rig
    table: RigTable
    staged: list[StagedFile] = field(default_factory=list)

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        return [self._stage(split) for split in plan.splits]

    def _stage(self, split: Split) -> Report:
        count = int(split.end or "0") - int(split.start)
        files = self.rig.stage(self.table, some_rows(int(split.start), count), "attempt")
        self.staged.extend(files)
        return Report(
            split=split.number,
            partition=split.partition,
            start=split.start,
            end=split.end or "",
            files=files,
            rows=RowCounts(total=count, loaded=count),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A coordinator and what it works with."""

    coordinator: Coordinator
    stager: RigStager

    def start(self) -> Bill:
        return run_steps(self.coordinator.start())

    def run_batch(self) -> Bill | None:
        return run_steps(self.coordinator.run_batch())


def driver(rig: Rig, table: RigTable, job: Job, *, tokens: NewToken = new_token) -> Driver:
    """A new incarnation of a job."""
    stager = RigStager(rig=rig, table=table)
    world = CoordinatorPorts(
        table=table, bills=table.bills, planner=CountingPlanner(), stager=stager, clock=Ticking(), new_token=tokens
    )
    return Driver(coordinator=Coordinator(job, world, Incarnation(f"tests-{new_token():x}")), stager=stager)


def ids(rig: Rig, table: RigTable) -> list[int]:
    """The ids of all rows, in order."""
    return sorted(row["id"] for row in rig.rows(table))


def heads(table: RigTable, jobs: Sequence[Job]) -> Mapping[JobId, Head | None]:
    return {job.job_id: table.read_head(job.job_id) for job in jobs}
