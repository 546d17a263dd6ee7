"""The seven steps, one behaviour at a time. The simulator covers their combinations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from lading.commit.coordinator import Coordinator
from lading.commit.steps import STEP_NAMES, Steps, run_steps
from lading.errors import (
    BudgetError,
    CommitRefusedError,
    FencedError,
    JobChangedError,
    JobStateError,
    LadingError,
    SchemaMismatchError,
    StageError,
    UnknownOutcomeError,
)
from lading.failpoints import arm, disarm_all
from lading.model.batch import BatchPlan, Limits, Report
from lading.model.bill import Bill, BillKind, Head
from lading.model.job import ErrorBudget
from lading.model.outcome import NotLanded, Unknown
from tests.commit.bench import JOB, Bench, bench

__all__ = ["bench"]


def test_a_start_is_pinned_before_the_first_row_is_read(bench: Bench) -> None:
    run_steps(bench.incarnation(start="LATEST").start())
    bench.source.produce(10)
    second = bench.incarnation(start="LATEST")
    run_steps(second.start())
    while run_steps(second.run_batch()):
        pass
    assert second.bill is not None
    assert second.bill.totals.rows.total == 10


def test_nothing_can_be_done_before_the_start(bench: Bench) -> None:
    with pytest.raises(JobStateError, match="Start the job first"):
        run_steps(bench.incarnation().run_batch())


def test_every_row_is_loaded_once_and_the_totals_say_so(bench: Bench) -> None:
    coordinator = bench.started()
    while run_steps(coordinator.run_batch()):
        pass
    assert coordinator.bill is not None
    assert bench.loaded() == bench.expected() == coordinator.bill.totals.rows.loaded
    assert coordinator.bill.totals.rows.total == 20


def test_when_nothing_moved_nothing_is_committed(bench: Bench) -> None:
    coordinator = bench.started()
    while run_steps(coordinator.run_batch()):
        pass
    before = bench.head()
    assert run_steps(coordinator.run_batch()) is None
    assert bench.head() == before


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda reports: reports[1:], "missing"),
        (lambda reports: [], "missing"),
        (lambda reports: [*reports, reports[0]], "doubled"),
        (lambda reports: [*reports, replace(reports[0], split=99)], "no planned split"),
        (lambda reports: [replace(reports[0], start="7"), *reports[1:]], "another range"),
        (lambda reports: [replace(reports[0], end="1"), *reports[1:]], "planned end"),
        (lambda reports: [replace(reports[0], files=()), *reports[1:]], "do not hold"),
    ],
)
def test_reports_that_do_not_fit_the_plan_commit_nothing(
    bench: Bench, change: Callable[[list[Report]], list[Report]], word: str
) -> None:
    coordinator = bench.started()
    before = bench.head()
    bench.stager.change = change
    with pytest.raises(StageError, match=word):
        run_steps(coordinator.run_batch())
    assert (bench.head(), bench.loaded()) == (before, 0)
    bench.stager.change = lambda reports: reports
    while run_steps(coordinator.run_batch()):
        pass
    assert bench.loaded() == bench.expected()


@pytest.mark.parametrize("budget", [ErrorBudget(strict=True), ErrorBudget(max_ratio=0.0)])
def test_too_many_bad_rows_commit_nothing(bench: Bench, budget: ErrorBudget) -> None:
    bench.source.produce(200)
    coordinator = bench.started(budget=budget, limits=Limits(rows=200))
    before = bench.head()
    with pytest.raises(BudgetError, match="Nothing was committed") as caught:
        run_steps(coordinator.run_batch())
    assert bench.head() == before
    assert caught.value.facts["head"] == (before.bill_name if before else ""), (
        "its bad rows are shown until something is committed"
    )
    assert "quarantine" in caught.value.facts


def test_a_lost_answer_is_found_by_its_token_and_nothing_is_loaded_twice(bench: Bench) -> None:
    coordinator = bench.started()
    bench.table.answers = [(True, Unknown(why="connection reset"))]
    bill = run_steps(coordinator.run_batch())
    assert bill is not None
    assert bench.head() == bill.head
    while run_steps(coordinator.run_batch()):
        pass
    assert bench.loaded() == bench.expected()


def test_a_lost_request_is_sent_again_with_the_same_token(bench: Bench) -> None:
    coordinator = bench.started()
    bench.table.answers = [(False, Unknown(why="timed out"))]
    bill = run_steps(coordinator.run_batch())
    assert bill is not None
    assert bench.head() == bill.head


def test_when_the_outcome_stays_unknown_the_files_are_kept(bench: Bench) -> None:
    coordinator = bench.started()
    bench.table.answers = [(False, Unknown(why="timed out"))] * 5
    with pytest.raises(UnknownOutcomeError, match="files are kept"):
        run_steps(coordinator.run_batch())
    bill = bench.bills.read(JOB.job_id, bench.bills.heads(JOB.job_id)[-1])
    assert all(bench.table.file_rows(file.path) is not None for file in bill.files)


def test_after_a_certain_refusal_the_files_are_gone_and_the_head_stands(bench: Bench) -> None:
    coordinator = bench.started()
    before = bench.head()
    bench.table.answers = [(False, NotLanded(why="disk full"))]
    with pytest.raises(CommitRefusedError, match="disk full"):
        run_steps(coordinator.run_batch())
    bill = bench.bills.read(JOB.job_id, bench.bills.heads(JOB.job_id)[-1])
    assert bench.head() == before
    assert all(bench.table.file_rows(file.path) is None for file in bill.files)


def test_a_refusal_after_an_unknown_outcome_deletes_nothing(bench: Bench) -> None:
    coordinator = bench.started()
    bench.table.answers = [(False, Unknown(why="timed out")), (False, NotLanded(why="disk full"))]
    with pytest.raises(UnknownOutcomeError):
        run_steps(coordinator.run_batch())
    bill = bench.bills.read(JOB.job_id, bench.bills.heads(JOB.job_id)[-1])
    assert all(bench.table.file_rows(file.path) is not None for file in bill.files)


def test_files_that_the_table_refuses_are_removed_and_the_head_stands(bench: Bench) -> None:
    coordinator = bench.started()
    before = bench.head()
    batch = coordinator.run_batch()
    while next(batch) != "commit.before":
        pass
    bill = bench.bills.read(JOB.job_id, bench.bills.heads(JOB.job_id)[-1])
    bench.table.write_file(bill.files[0].path, ["other", "rows", "than", "were", "staged"])
    with pytest.raises(SchemaMismatchError):
        run_steps(batch)
    assert bench.head() == before
    assert all(bench.table.file_rows(file.path) is None for file in bill.files)


def test_a_second_incarnation_fences_the_first(bench: Bench) -> None:
    first = bench.started()
    bench.started()
    with pytest.raises(FencedError, match="stop one of the two"):
        run_steps(first.run_batch())


def test_of_two_that_start_at_the_same_moment_the_slower_one_looks_again(bench: Bench) -> None:
    """It may be the one that has the job; the other one may not know yet that it lost it."""
    slow = bench.incarnation()
    steps = slow.start()
    while next(steps) != "commit.before":
        pass
    quick = bench.started()
    run_steps(steps)
    assert slow.bill is not None
    assert (slow.bill.kind, slow.bill.head) == (BillKind.TAKEOVER, bench.head())
    with pytest.raises(FencedError):
        run_steps(quick.run_batch())
    while run_steps(slow.run_batch()):
        pass
    assert bench.loaded() == bench.expected()


def test_an_incarnation_fenced_in_the_middle_of_a_batch_leaves_nothing_in_the_table(bench: Bench) -> None:
    first = bench.started()
    batch = first.run_batch()
    while next(batch) != "commit.before":
        pass
    second = bench.started()
    with pytest.raises(FencedError):
        run_steps(batch)
    while run_steps(second.run_batch()):
        pass
    assert bench.loaded() == bench.expected()


def test_after_a_goodbye_nobody_needs_to_be_fenced(bench: Bench) -> None:
    first = bench.started()
    assert first.bill is not None
    bill = run_steps(bench.incarnation().start(said_goodbye=first.bill.head))
    assert bill.kind is BillKind.OPENING


def test_an_edit_raises_the_epoch_and_rows_come_again(bench: Bench) -> None:
    coordinator = bench.started()
    while run_steps(coordinator.run_batch()):
        pass
    bill = run_steps(coordinator.edit({"shard-0000": "0"}, reason="load it again"))
    assert (bill.epoch, bill.kind) == (1, BillKind.EDIT)
    while run_steps(coordinator.run_batch()):
        pass
    again = sum(row.fate == "loaded" for row in bench.source.shards["shard-0000"].rows)
    assert bench.loaded() == bench.expected() + again


def test_a_batch_planned_before_an_edit_cannot_land_after_it(bench: Bench) -> None:
    coordinator = bench.started()
    batch = coordinator.run_batch()
    while next(batch) != "commit.before":
        pass
    run_steps(coordinator.edit({"shard-0000": "0"}, reason="again"))
    with pytest.raises(CommitRefusedError, match="seq 1 is its own"):
        run_steps(batch)
    assert bench.loaded() == 0


@pytest.mark.parametrize("verb", ["edit", "reopen", "restore"])
def test_an_operator_who_did_not_see_the_last_batch_changes_nothing(bench: Bench, verb: str) -> None:
    first = bench.started()
    batch = first.run_batch()
    while next(batch) != "commit.before":
        pass
    seen = first.bill
    assert seen is not None
    landed = run_steps(batch)
    assert landed is not None
    second = bench.started()
    assert second.bill is not None

    def steps(at: Head) -> Steps[Bill]:
        if verb == "restore":
            return second.restore(seen.positions, reason="back", seen=at)
        if verb == "reopen":
            return second.reopen(reason="again", seen=at)
        return second.edit({"shard-0000": "0"}, reason="again", seen=at)

    with pytest.raises(JobChangedError, match="has loaded 6 rows since it was looked at"):
        run_steps(steps(seen.head))
    assert bench.head() == second.bill.head
    assert run_steps(steps(landed.head)).kind is BillKind.EDIT  # only a takeover came since
    with pytest.raises(JobChangedError, match="was changed since"):
        run_steps(steps(landed.head))


def test_followers_catch_up_after_a_crash_in_order_and_once(bench: Bench) -> None:
    first = bench.started()
    batch = first.run_batch()
    while next(batch) != "settle.after":
        pass
    batch.close()
    bench.started()
    assert [bill.seq for bill in bench.follower.bills] == [0, 1, 2]


@pytest.mark.parametrize("name", [name for name in STEP_NAMES if not name.startswith("edit")])
def test_a_crash_at_any_step_loses_and_doubles_nothing(bench: Bench, name: str) -> None:
    class Crash(Exception):
        pass

    def crash(_name: str) -> None:
        disarm_all()
        raise Crash

    bench.source.produce(10)
    arm(name, crash)
    try:
        for _ in range(2):
            try:
                coordinator = bench.started()
                while run_steps(coordinator.run_batch()):
                    pass
            except Crash:
                continue
    finally:
        disarm_all()
    assert bench.loaded() == bench.expected()


def test_every_error_says_what_was_left_and_what_to_do() -> None:
    error = LadingError("It failed", left="Nothing was changed.", todo="Try again.")
    assert str(error) == "It failed. Nothing was changed. Try again."


def test_a_start_from_an_old_head_is_not_fenced_by_its_own_incarnation(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The views could not follow a takeover, the next start got an old answer, and the job waited for a person."""
    first = bench.started()
    opening = bench.head()
    again = Coordinator(first.job, first._world, first.incarnation)
    run_steps(again.start())
    third, whole, answers = Coordinator(first.job, first._world, first.incarnation), bench.table.read_head, [opening]
    monkeypatch.setattr(bench.table, "read_head", lambda job_id: answers.pop() if answers else whole(job_id))
    with pytest.raises(CommitRefusedError, match="planned on an old head"):
        run_steps(third.start(last_seen=opening))
    run_steps(third.start(last_seen=opening))


def test_what_a_batch_tells_its_rows_is_what_its_bill_says(bench: Bench) -> None:
    plans, bills = list[BatchPlan](), list[Bill]()
    scripted = bench.stager

    class Watching:
        def stage(self, plan: BatchPlan) -> Sequence[Report]:
            plans.append(plan)
            return scripted.stage(plan)

    bench.stager = Watching()  # type: ignore[assignment]
    for dies in (True, True, False):
        # A process that dies before its commit leaves nothing: the next one plans again, under a seq of its own.
        coordinator = bench.started()
        while bill := run_steps(coordinator.run_batch()):
            assert (plans[-1].seq, plans[-1].planned_at) == (bill.seq, bill.planned_at)
            bills.append(bill)
            coordinator._world.clock.sleep(1.0)
            if dies:
                for name in coordinator.run_batch():
                    if name == "bill.before":
                        break
                assert plans[-1].seq == bill.seq + 1
                break
    assert bench.loaded() == bench.expected()
    assert len(plans) == len(bills) + 2
    assert len({bill.seq for bill in bills}) == len(bills)
