"""The contract of commits: the same tests for every table."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lading.commit.rollback import RollbackSight
from lading.commit.steps import run_steps
from lading.errors import CommitRefusedError, FencedError, RolledBackError
from lading.model.bill import Bill, BillKind, Head, resume_copy
from lading.model.job import Job
from lading.model.outcome import Landed, NotLanded, Outcome, Unknown
from tests.tables.drive import (
    SPEC,
    driver,
    heads,
    ids,
    load,
    new_job,
    opening,
    put_and_commit,
    some_rows,
    takeover,
)
from tests.tables.rig import Rig, RigTable

THREADS = 8


def opened(rig: Rig, name: str = "clicks") -> tuple[RigTable, Job, Bill]:
    """A table with one open job."""
    table, job = rig.create(name, SPEC), new_job()
    bill = opening(job)
    assert isinstance(put_and_commit(table, bill), Landed)
    return table, job, bill


def test_a_new_table_has_no_head(rig: Rig) -> None:
    table = rig.create("clicks", SPEC)
    assert table.read_head(new_job().job_id) is None


def test_a_commit_moves_the_head_and_adds_the_rows(rig: Rig) -> None:
    table, job, first = opened(rig)
    bill = load(job, first, rig.stage(table, some_rows(0, 3), "a"))
    assert isinstance(put_and_commit(table, bill), Landed)
    again = rig.reopen("clicks")
    assert again.read_head(job.job_id) == table.read_head(job.job_id) == bill.head
    assert ids(rig, again) == [0, 1, 2]


def test_of_two_commits_from_one_head_exactly_one_lands(rig: Rig) -> None:
    table, job, first = opened(rig)
    other = rig.reopen("clicks")
    mine = load(job, first, rig.stage(table, some_rows(0, 3), "a"))
    theirs = load(job, first, rig.stage(other, some_rows(0, 3), "b"))
    assert isinstance(put_and_commit(other, theirs), Landed)
    assert isinstance(put_and_commit(table, mine), NotLanded)
    assert table.read_head(job.job_id) == theirs.head
    assert ids(rig, table) == [0, 1, 2]
    assert table.find(job.job_id, theirs.token)
    assert not table.find(job.job_id, mine.token)


def test_of_two_incarnations_the_older_is_fenced(rig: Rig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    older = driver(rig, table, job)
    older.start()
    older.run_batch()
    younger = driver(rig, rig.reopen("clicks"), job)
    younger.start()
    with pytest.raises(FencedError):
        older.run_batch()
    younger.run_batch()
    assert ids(rig, table) == [0, 1, 2, 3, 4, 5]


def test_a_batch_staged_before_a_takeover_is_fenced_and_its_files_are_removed(rig: Rig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    older = driver(rig, table, job)
    older.start()
    steps = older.coordinator.run_batch()
    while next(steps) != "bill.after":
        pass
    driver(rig, rig.reopen("clicks"), job).start()
    with pytest.raises(FencedError):
        run_steps(steps)
    assert ids(rig, table) == []
    assert not any(rig.exists(table, file) for file in older.stager.staged)


def test_eight_threads_from_one_head_have_one_winner_in_every_round(rig: Rig) -> None:
    table, job, base = opened(rig)
    handles = [rig.reopen("clicks") for _ in range(THREADS)]
    gate = threading.Barrier(THREADS)

    def race(handle: RigTable, bill: Bill) -> Outcome:
        handle.bills.put(bill)
        gate.wait()
        return handle.commit(bill.replaces, bill.files, bill)

    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(rig.race_rounds):
            bills = [takeover(job, base) for _ in handles]
            outcomes = list(pool.map(race, handles, bills))
            winners = [bill for bill, outcome in zip(bills, outcomes, strict=True) if isinstance(outcome, Landed)]
            assert len(winners) == 1
            assert sum(isinstance(outcome, NotLanded) for outcome in outcomes) == THREADS - 1
            base = winners[0]
            assert table.read_head(job.job_id) == base.head
    assert base.seq == rig.race_rounds


def test_an_unrelated_append_in_between_disturbs_nobody(rig: Rig) -> None:
    table, job, first = opened(rig)
    bill = load(job, first, rig.stage(table, some_rows(0, 3), "a"))
    rig.append_unrelated("clicks", some_rows(100, 2))
    assert isinstance(put_and_commit(table, bill), Landed)
    rig.append_unrelated("clicks", some_rows(102, 1))
    assert table.read_head(job.job_id) == bill.head
    assert ids(rig, table) == [0, 1, 2, 100, 101, 102]


def test_two_jobs_in_one_table_do_not_disturb_each_other(rig: Rig) -> None:
    table = rig.create("clicks", SPEC)
    jobs = [new_job("one"), new_job("two")]
    drivers = [driver(rig, rig.reopen("clicks"), job) for job in jobs]
    bills = [each.start() for each in drivers]
    for _ in range(3):
        bills = [each.run_batch() or bill for each, bill in zip(drivers, bills, strict=True)]
    assert heads(table, jobs) == {bill.job_id: bill.head for bill in bills}
    assert ids(rig, table) == sorted([*range(9), *range(9)])


def test_a_lost_answer_is_found_out_by_the_token(rig: Rig) -> None:
    table, job, first = opened(rig)
    bill = load(job, first, rig.stage(table, some_rows(0, 3), "a"))
    with rig.lose_answer_once(table):
        assert isinstance(put_and_commit(table, bill), Unknown)
    assert table.find(job.job_id, bill.token)
    assert table.read_head(job.job_id) == bill.head


def test_a_lost_answer_loads_nothing_twice_and_keeps_the_files(rig: Rig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    loader.start()
    steps = loader.coordinator.run_batch()
    while next(steps) != "bill.after":
        pass
    with rig.lose_answer_once(table):
        bill = run_steps(steps)
    assert bill is not None
    assert table.read_head(job.job_id) == bill.head
    loader.run_batch()
    assert ids(rig, table) == [0, 1, 2, 3, 4, 5]
    assert all(rig.exists(table, file) for file in loader.stager.staged)


def test_a_commit_that_landed_unseen_is_not_forgotten_when_others_went_on(rig: Rig) -> None:
    table, job, first = opened(rig)
    bill = load(job, first, rig.stage(table, some_rows(0, 3), "a"))
    with rig.lose_answer_once(table):
        assert isinstance(put_and_commit(table, bill), Unknown)
    other = rig.reopen("clicks")
    assert isinstance(put_and_commit(other, takeover(job, bill)), Landed)
    assert not isinstance(table.commit(first.head, bill.files, bill), Landed)
    assert table.find(job.job_id, bill.token)
    assert ids(rig, table) == [0, 1, 2]


def test_a_certain_failure_removes_the_files_and_leaves_the_head(rig: Rig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    first = loader.start()
    steps = loader.coordinator.run_batch()
    while next(steps) != "bill.after":
        pass
    with rig.fail_once(table), pytest.raises(CommitRefusedError):
        run_steps(steps)
    assert table.read_head(job.job_id) == first.head
    assert not any(rig.exists(table, file) for file in loader.stager.staged)
    loader.run_batch()
    assert ids(rig, table) == [0, 1, 2]


def test_a_bill_that_was_never_committed_is_ignored_by_the_next_start(rig: Rig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    dying = driver(rig, table, job)
    dying.start()
    steps = dying.coordinator.run_batch()
    while next(steps) != "bill.after":
        pass
    steps.close()
    again = driver(rig, rig.reopen("clicks"), job)
    again.start()
    again.run_batch()
    assert ids(rig, table) == [0, 1, 2]


def test_a_job_goes_on_after_other_engines_removed_its_bills_as_orphans(rig: Rig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    loader.start()
    for _ in range(3):
        bill = loader.run_batch()
    assert bill is not None
    assert rig.remove_orphans("clicks") >= 4  # The bills, at least.
    kept = rig.reopen("clicks").bills.read(job.job_id, bill.head)
    assert kept == resume_copy(bill)
    loader.run_batch()  # The incarnation that runs does not care.
    assert rig.remove_orphans("clicks") >= 1
    fresh = driver(rig, rig.reopen("clicks"), job)
    fresh.start()
    fresh.run_batch()
    assert ids(rig, rig.reopen("clicks")) == [*range(15)]
    assert fresh.coordinator.bill is not None
    assert fresh.coordinator.bill.totals.rows.loaded == 15


def test_heads_survive_the_maintenance_of_others(rig: Rig) -> None:
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    loader.start()
    for _ in range(3):
        bill = loader.run_batch()
    assert bill is not None
    rig.append_unrelated("clicks", some_rows(100, 2))
    rig.others_maintain("clicks")
    assert rig.reopen("clicks").read_head(job.job_id) == bill.head
    assert table.read_head(job.job_id) == bill.head
    loader.run_batch()
    rig.others_maintain("clicks")
    fresh = driver(rig, rig.reopen("clicks"), job)
    fresh.start()
    fresh.run_batch()
    assert ids(rig, rig.reopen("clicks")) == [*range(15), 100, 101]


def rolled_back(rig: Rig) -> tuple[RigTable, Job, Head, Head]:
    """A table put back by one load; the head that stands, and the one whose rows it ends with."""
    table, job = rig.create("clicks", SPEC), new_job()
    loader = driver(rig, table, job)
    loader.start()
    older, newer = loader.run_batch(), loader.run_batch()
    assert older is not None
    assert newer is not None
    rig.restore_older("clicks", 1)
    return table, job, newer.head, older.head


def test_a_restored_older_version_is_noticed(rig: Rig) -> None:
    table, job, _, _ = rolled_back(rig)
    with pytest.raises(RolledBackError):
        table.read_head(job.job_id)
    with pytest.raises(RolledBackError):
        rig.reopen("clicks").read_head(job.job_id)


def test_nothing_lands_on_a_table_that_was_put_back(rig: Rig) -> None:
    table, job, newest, _ = rolled_back(rig)
    bill = takeover(job, table.bills.read(job.job_id, newest))
    table.bills.put(bill)
    for handle in (table, rig.reopen("clicks")):
        with pytest.raises(RolledBackError):
            handle.commit(newest, (), bill)
        assert handle.read_head_unchecked(job.job_id) == newest


def test_an_accepted_rollback_goes_on_from_the_restored_rows(rig: Rig) -> None:
    _, job, newest, restored = rolled_back(rig)
    table = rig.reopen("clicks")
    assert table.read_head_unchecked(job.job_id) == newest
    assert table.ends_with(job.job_id) == restored
    sight = RollbackSight(head=newest, restored=restored, goes_on=restored, version=table.version())
    loader = driver(rig, table, job)
    bill = run_steps(loader.coordinator.accept_rollback(sight, reason="a bad load was taken back"))
    assert bill.kind is BillKind.EDIT
    assert table.read_head(job.job_id) == bill.head
    fresh = driver(rig, rig.reopen("clicks"), job)
    fresh.start()
    fresh.run_batch()
    assert ids(rig, table) == [0, 1, 2, 3, 4, 5]


def test_an_accepted_rollback_does_not_cover_a_later_one(rig: Rig) -> None:
    _, job, newest, restored = rolled_back(rig)
    table = rig.reopen("clicks")
    sight = RollbackSight(head=newest, restored=restored, goes_on=restored, version=table.version())
    rig.restore_older("clicks", 3)
    with pytest.raises(RolledBackError):
        run_steps(driver(rig, table, job).coordinator.accept_rollback(sight, reason="meant the first one"))
    assert table.read_head_unchecked(job.job_id) == newest


def test_a_commit_without_files_moves_the_head(rig: Rig) -> None:
    table, job, first = opened(rig)
    bill = takeover(job, first)
    assert isinstance(put_and_commit(table, bill), Landed)
    assert rig.reopen("clicks").read_head(job.job_id) == bill.head
    assert rig.rows(table) == []


def test_a_commit_without_files_fences_a_batch_prepared_before_it(rig: Rig) -> None:
    table, job, first = opened(rig)
    prepared = load(job, first, rig.stage(table, some_rows(0, 3), "a"))
    fence = takeover(job, first)
    assert isinstance(put_and_commit(rig.reopen("clicks"), fence), Landed)
    assert isinstance(put_and_commit(table, prepared), NotLanded)
    assert table.read_head(job.job_id) == fence.head
    assert rig.rows(table) == []
