"""Kills at every step between commits and listeners, in any order: nothing is told too early, and nothing never."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts
from lading.commit.steps import Steps
from lading.ids import Incarnation, new_job_id, new_token
from lading.model.batch import BatchPlan, Limits, Report, Split, StagedFile
from lading.model.bill import Bill
from lading.model.job import Job
from lading.model.notices import ListenRule, Notice, NoticeKey, PartitionField
from lading.model.positions import PartitionState, Positions
from lading.model.tally import RowCounts
from lading.service.runtime.listeners import JobListeners
from lading.tables.memory import MemoryBills, MemoryTable
from lading.testing.clock import ManualClock
from tests.support.examples import examples

IDLE_S = 60.0
LISTENERS = ("a", "b")


@dataclass
class Source:
    """Partitions of the table in the order in which rows for them come: a batch is one of them."""

    rows: list[str] = field(default_factory=list)

    def open(self, start: str) -> Positions:
        return Positions(partitions={"s": PartitionState(at="0")})

    def take_in(self, base: Positions) -> Positions:
        return base

    def plan(self, base: Positions, limits: Limits) -> BatchPlan:
        at = int(base.partitions["s"].at)
        splits = (Split(number=0, partition="s", start=str(at), end=str(at + 1)),) if at < len(self.rows) else ()
        return BatchPlan(positions=base, splits=splits)


@dataclass
class World:
    """What outlives a process."""

    source: Source = field(default_factory=Source)
    table: MemoryTable = field(default_factory=MemoryTable)
    clock: ManualClock = field(default_factory=ManualClock)
    told: dict[NoticeKey, Notice] = field(default_factory=dict)
    tells: int = 0
    failing: bool = False
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bills = MemoryBills(self.table)
        rule = ListenRule(listeners=LISTENERS, fields=(PartitionField(name="p"),), idle_s=IDLE_S)
        self.job = Job(job_id=new_job_id(), name="j", listening=rule)

    def stage(self, plan: BatchPlan) -> list[Report]:
        [split] = plan.splits
        path = f"{new_token()}.parquet"
        self.table.write_file(path, [int(split.start)])
        file = StagedFile(path=path, rows=1, size_bytes=1, partition={"p": self.source.rows[int(split.start)]})
        end, rows = split.end or "", RowCounts(total=1, loaded=1)
        return [Report(split=0, partition="s", start=split.start, end=end, files=(file,), rows=rows)]

    def tell(self, bill: Bill, notice: Notice) -> None:
        """A listener. Errors of it are nobody's but its own: what is wrong is kept, and looked at in the end."""
        loaded = self.source.rows[: bill.totals.rows.loaded]
        claims = {
            "of a bill that is not the head": self.table.read_head(self.job.job_id) == bill.head,
            "of rows that the table does not have": len(self.table.rows()) == len(loaded),
            "of a commit that is to come": notice.seq <= bill.seq,
            "of a partition without rows": notice.partition in {self.name(value) for value in loaded},
        }
        self.wrong += [claim for claim, holds in claims.items() if not holds]
        if self.failing:
            raise ConnectionError
        if self.told.setdefault(notice.key, notice) != notice:
            self.wrong.append("another thing under the same key")
        self.tells += 1

    @staticmethod
    def name(value: str) -> str:
        return f"p={value}"

    def process(self) -> Coordinator:
        """A new one, which knows nothing but what is in the table."""
        ports = CoordinatorPorts(
            table=self.table,
            bills=self.bills,
            planner=self.source,
            stager=self,
            clock=self.clock,
            new_token=new_token,
            listeners=JobListeners(dict.fromkeys(LISTENERS, self), self.clock),
        )
        return Coordinator(self.job, ports, Incarnation(f"{new_token():x}"))


def drive(steps: Steps[object], most: int | None = None) -> bool:
    """Whether it came to its end. After so many steps the process is killed."""
    for number, _ in enumerate(steps):
        if number == most:
            steps.close()
            return False
    return True


def run_until_quiet(world: World, running: Coordinator) -> None:
    for _ in range(100):
        before = running.bill
        drive(running.run_batch())
        if running.bill == before and not running.teller.owes_answers:
            return
    raise AssertionError(running.bill)


Event = st.one_of(
    st.tuples(st.just("rows"), st.sampled_from("xyz")),
    st.tuples(st.just("wait"), st.integers(1, 70)),
    st.tuples(st.just("batch"), st.just(0)),
    st.tuples(st.just("kill"), st.integers(0, 16)),
    st.tuples(st.just("kill at start"), st.integers(0, 12)),
    st.tuples(st.just("fail"), st.booleans()),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(Event, max_size=25))
def test_whatever_is_killed_all_is_told_after_its_commit_and_nothing_again_once_the_bill_knows(
    events: list[tuple[str, object]],
) -> None:
    world = World()
    running = world.process()
    drive(running.start())
    has_died = False
    for what, value in events:
        match what:
            case "rows":
                world.source.rows.append(str(value))
            case "wait":
                world.clock.sleep(float(str(value)))
            case "fail":
                world.failing = bool(value)
            case "batch":
                drive(running.run_batch())
            case _:
                steps = running.run_batch() if what == "kill" else world.process().start()
                if not drive(steps, int(str(value))) or what == "kill at start":
                    has_died, running = True, world.process()
                    drive(running.start())
    world.failing = False
    run_until_quiet(world, running)
    for _ in range(2):
        world.clock.sleep(700)  # Longer than the longest wait of a listener that failed.
        run_until_quiet(world, running)
    check(world, running, has_died=has_died)


def check(world: World, running: Coordinator, *, has_died: bool) -> None:
    bill, rows = running.bill, world.source.rows
    assert bill is not None
    assert bill.listening is not None or not rows
    if bill.listening is not None:
        assert (bill.listening.open, bill.listening.notices) == ({}, ())
    assert sorted(world.table.rows()) == list(range(len(rows)))  # No load was lost or repeated.
    by_listener: dict[tuple[str, str], int] = defaultdict(int)
    for notice in world.told.values():
        by_listener[notice.listener, notice.partition] += notice.rows
    for name in set(rows):
        for listener in LISTENERS:
            told = by_listener[listener, World.name(name)]
            # After a kill rows may be told of again, with those that came later; never less.
            assert told >= rows.count(name) if has_died else told == rows.count(name)
    tells = world.tells
    again = world.process()
    drive(again.start())
    run_until_quiet(world, again)
    assert world.tells == tells
    assert world.wrong == []
