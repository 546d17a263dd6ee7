"""Heads that are lost, that went back, and that name bills nobody wrote, one behaviour at a time."""

from __future__ import annotations

import pytest

from lading.commit.rollback import RollbackSight
from lading.commit.steps import run_steps
from lading.errors import (
    HeadLostError,
    RolledBackError,
)
from tests.commit.bench import JOB, Bench, bench

__all__ = ["bench"]


def test_a_bill_whose_commit_never_happened_is_read_by_nobody(bench: Bench) -> None:
    first = bench.started()
    batch = first.run_batch()
    while next(batch) != "bill.after":
        pass
    batch.close()
    second = bench.started()
    while run_steps(second.run_batch()):
        pass
    assert bench.loaded() == bench.expected()


def test_a_head_that_names_a_bill_that_is_gone_stops_the_job_and_changes_nothing(bench: Bench) -> None:
    bench.started()
    head = bench.head()
    assert head is not None
    bench.bills.forget(JOB.job_id, head)
    with pytest.raises(HeadLostError, match="is gone"):
        bench.started()
    assert bench.head() == head


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_table_put_back_stops_the_job_and_an_operator_can_accept_it(bench: Bench, is_kept: bool) -> None:
    coordinator = bench.started()
    for _ in range(2):
        run_steps(coordinator.run_batch())
    assert coordinator.bill is not None
    restored, lost = bench.table.versions[2].heads[JOB.job_id], coordinator.bill.tally.rows.loaded
    bench.table.restore(2)
    assert bench.table.ends_with(JOB.job_id) == restored
    with pytest.raises(RolledBackError, match="rolled back"):
        run_steps(coordinator.run_batch())
    with pytest.raises(RolledBackError):
        bench.started()
    head = bench.table.read_head_unchecked(JOB.job_id)
    assert head is not None
    goes_on = head if is_kept else restored
    sight = RollbackSight(head=head, restored=restored, goes_on=goes_on, version=bench.table.version())
    run_steps(coordinator.accept_rollback(sight, reason="restored from Monday"))
    while run_steps(coordinator.run_batch()):
        pass
    assert lost > 0
    expected = bench.expected() - (lost if is_kept else 0)
    assert bench.loaded() == expected == coordinator.bill.totals.rows.loaded


def test_a_head_that_went_back_is_noticed_from_the_store_or_from_the_bills(bench: Bench) -> None:
    coordinator = bench.started()
    run_steps(coordinator.run_batch())
    run_steps(coordinator.run_batch())
    assert coordinator.bill is not None
    bench.table.restore_with_heads(1)
    with pytest.raises(RolledBackError):
        run_steps(bench.incarnation().start(last_seen=coordinator.bill.head))
    with pytest.raises(RolledBackError):
        run_steps(bench.incarnation().start())


def test_no_epoch_is_used_twice_when_a_table_is_put_back_twice_with_its_heads(bench: Bench) -> None:
    """What follows the bills tells by the epoch whether counts only grew. Once both lines had the same one."""
    coordinator, epochs = bench.started(), list[int]()
    run_steps(coordinator.run_batch())
    for _ in range(2):
        bench.table.restore_with_heads(1)
        head = bench.table.read_head_unchecked(JOB.job_id)
        assert head is not None
        sight = RollbackSight(head=head, restored=head, goes_on=head, version=bench.table.version())
        bill = run_steps(coordinator.accept_rollback(sight, reason="a copy of the folder came back"))
        epochs.append(bill.epoch if bill is not None else -1)
        run_steps(coordinator.run_batch())
    assert coordinator.bill is not None
    assert epochs == sorted(set(epochs))
