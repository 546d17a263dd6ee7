"""Which snapshots a batch joins: those that the bill before it names, whatever dies and whatever is removed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from lading.commit.coordinator import Coordinator
from lading.commit.steps import STEP_NAMES, run_steps
from lading.errors import BudgetError, ConfigError, StageError
from lading.model.batch import BatchPlan, Report
from lading.model.bill import BillKind
from lading.model.job import ErrorBudget
from lading.model.joined import JoinedTable
from lading.model.state import StateChange, StateRef
from tests.commit.bench import Bench, bench

__all__ = ["bench"]
IN_BATCHES = [name for name in STEP_NAMES if not name.startswith(("edit", "start"))]


class Dimension:
    """A table that moves on, and may forget."""

    def __init__(self) -> None:
        self.version, self.oldest, self.incarnation, self.is_there = 1, 1, "a", True

    def newest(self) -> tuple[JoinedTable, ...]:
        if not self.is_there:
            msg = "The table is gone"
            raise ConfigError(msg, left="Nothing was read.", todo="Create it again.")
        return (JoinedTable(table="shop.pages", incarnation=self.incarnation, snapshot=str(self.version)),)

    def can_read(self, joined: Sequence[JoinedTable]) -> bool:
        return all(int(each.snapshot) >= self.oldest for each in joined)


class JoiningBench:
    """The bench with a table to join with. It remembers what each attempt at a range joined."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.pages = bench, Dimension()
        self.attempts: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.change = StateChange(state=None)

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        for split in plan.splits:
            self.attempts[split.partition, split.start].append(plan.joined[0].snapshot)
        return replace(self.change, files=tuple(file for report in reports for file in report.files))

    def incarnation(self, **changes: object) -> Coordinator:
        coordinator = self.bench.incarnation(**changes)
        coordinator._world = replace(coordinator._world, joins=self.pages, merger=self)
        return coordinator

    def started(self, **changes: object) -> Coordinator:
        coordinator = self.incarnation(**changes)
        run_steps(coordinator.start())
        return coordinator

    def kinds(self) -> list[BillKind]:
        return [bill.kind for bill in self.bench.follower.bills]


@pytest.fixture
def joining(bench: Bench) -> JoiningBench:
    return JoiningBench(bench)


def finish(coordinator: Coordinator) -> None:
    while run_steps(coordinator.run_batch()):
        pass


def test_only_a_snapshot_that_is_new_costs_a_commit(joining: JoiningBench) -> None:
    coordinator = joining.started()
    run_steps(coordinator.run_batch())
    run_steps(coordinator.run_batch())
    joining.pages.version = 2
    finish(coordinator)
    kinds = joining.kinds()
    assert kinds[:5] == [BillKind.OPENING, BillKind.TAKEOVER, BillKind.LOAD, BillKind.LOAD, BillKind.TAKEOVER]
    assert kinds.count(BillKind.TAKEOVER) == 2
    assert [each for attempts in joining.attempts.values() for each in attempts][:2] == ["1", "1"]


def test_a_table_that_moves_all_the_time_does_not_keep_rows_from_being_loaded(joining: JoiningBench) -> None:
    coordinator = joining.started()
    for _ in range(20):
        joining.pages.version += 1
        run_steps(coordinator.run_batch())
    assert joining.bench.loaded() == joining.bench.expected()


@pytest.mark.parametrize("step", IN_BATCHES)
@pytest.mark.parametrize("seed", range(4))
def test_a_batch_that_is_repeated_joins_the_same_snapshot(joining: JoiningBench, step: str, seed: int) -> None:
    rng, coordinator = Random(seed), joining.started()
    for _ in range(6):
        batch = coordinator.run_batch()
        for name in batch:
            if name == step and rng.random() < 0.7:
                break
        joining.pages.version += rng.randint(0, 2)
        coordinator = joining.started()
    finish(coordinator)
    assert joining.bench.loaded() == joining.bench.expected()
    assert {len(set(attempts)) for attempts in joining.attempts.values()} == {1}


def test_a_batch_that_failed_joins_the_same_snapshot_again(joining: JoiningBench) -> None:
    coordinator = joining.started()
    run_steps(coordinator.run_batch())

    def fail(reports: list[Report]) -> list[Report]:
        joining.pages.version += 1
        raise StageError("x", left="Nothing.", todo="Again.")

    joining.bench.stager.change = fail
    with pytest.raises(StageError):
        run_steps(coordinator.run_batch())
    joining.bench.stager.change = lambda reports: reports
    bill = run_steps(coordinator.run_batch())
    assert bill is not None
    assert bill.joined[0].snapshot == "1"
    bill = run_steps(coordinator.run_batch())
    assert bill is not None
    assert bill.joined[0].snapshot == "2"


def test_a_snapshot_that_is_gone_is_replaced_also_when_the_batch_was_tried(joining: JoiningBench) -> None:
    coordinator = joining.started()
    run_steps(coordinator.run_batch())
    joining.pages.version = joining.pages.oldest = 5
    bill = run_steps(joining.started().run_batch())
    assert bill is not None
    assert bill.joined[0].snapshot == "5"


def test_a_table_that_was_made_again_is_another_one(joining: JoiningBench) -> None:
    coordinator = joining.started()
    run_steps(coordinator.run_batch())
    joining.pages.incarnation = "b"
    bill = run_steps(joining.started().run_batch())
    assert bill is not None
    assert bill.joined[0].incarnation == "b"


def test_a_table_that_is_gone_stops_the_job_before_anything_is_read(joining: JoiningBench) -> None:
    coordinator = joining.started()
    joining.pages.is_there = False
    before = joining.bench.head()
    with pytest.raises(ConfigError, match="The table is gone"):
        run_steps(coordinator.run_batch())
    assert (joining.bench.head(), joining.attempts) == (before, {})


def test_rows_that_merging_finds_bad_count_for_the_budget_and_leave_no_files(joining: JoiningBench) -> None:
    joining.change = StateChange(state=None, errors=1, first_error="a.csv, row 1: no number")
    coordinator = joining.started(budget=ErrorBudget(strict=True))
    with pytest.raises(BudgetError, match=r"1 of .* rows are bad; the first: a\.csv, row 1"):
        run_steps(coordinator.run_batch())
    assert joining.bench.loaded() == 0
