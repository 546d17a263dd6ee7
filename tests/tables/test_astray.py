"""A rollback that nobody has accepted yet: nothing may remove its traces, whichever job is looked after."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from lading.commit.rollback import RollbackSight
from lading.commit.steps import run_steps
from lading.errors import RolledBackError
from lading.model.bill import Bill
from lading.model.job import Job
from lading.tables.base import LakeTable
from lading.tables.maintenance import CarePolicy
from tests.tables.drive import SPEC, driver, ids, load, new_job, opening, put_and_commit, some_rows
from tests.tables.rig import Rig, RigTable

LATER = datetime(2100, 1, 1, tzinfo=UTC)
EAGER = CarePolicy(keep_commits=2, keep_age=timedelta(0), thin_to=timedelta(0))


def opened(table: RigTable) -> tuple[Job, Bill]:
    job = new_job()
    bill = opening(job)
    put_and_commit(table, bill)
    return job, bill


def loads(rig: Rig, table: RigTable, job: Job, base: Bill, *, first: int, count: int) -> list[Bill]:
    bills = [base]
    for number in range(first, first + count):
        bills.append(load(job, bills[-1], rig.stage(table, some_rows(number, 1), "a")))
        put_and_commit(table, bills[-1])
    return bills


def put_back(rig: Rig, table: RigTable) -> tuple[Job, Bill, Bill, Job, Bill]:
    """One job whose rows somebody took away, another that loads on."""
    busy, base = opened(table)
    idle, first = opened(table)
    kept, lost = loads(rig, table, idle, first, first=0, count=2)[1:]
    rig.restore_older("clicks", 1)
    return idle, kept, lost, busy, loads(rig, table, busy, base, first=100, count=8)[-1]


def test_the_care_of_one_job_keeps_the_traces_of_another_ones_rollback(local_lake: Rig) -> None:
    table = local_lake.create("clicks", SPEC)
    idle, kept, lost, busy, _ = put_back(local_lake, table)
    before = local_lake.versions("clicks"), table.bills.heads(busy.job_id)
    for _ in range(3):
        report = local_lake.look_after(table, busy.job_id, EAGER, LATER)
        assert idle.job_id in report.remark
        assert "SHOW ROLLBACK" in report.remark
    assert (local_lake.versions("clicks"), table.bills.heads(busy.job_id)) == before
    fresh = local_lake.reopen("clicks")
    with pytest.raises(RolledBackError):
        fresh.read_head(idle.job_id)
    # What was taken away can still be accepted, and then the table is looked after again.
    assert fresh.ends_with(idle.job_id) == kept.head
    sight = RollbackSight(head=lost.head, restored=kept.head, goes_on=lost.head, version=fresh.version())
    run_steps(driver(local_lake, fresh, idle).coordinator.accept_rollback(sight, reason="meant"))
    assert local_lake.look_after(table, busy.job_id, EAGER, LATER).remark == ""
    assert len(local_lake.versions("clicks")) < len(before[0])
    assert len(table.bills.heads(busy.job_id)) == 3
    assert ids(local_lake, table) == [0, *range(100, 108)]


def test_a_dropped_job_holds_nothing_up(local_lake: Rig) -> None:
    table = local_lake.create("clicks", SPEC)
    idle, _, lost, busy, _ = put_back(local_lake, table)
    before = local_lake.versions("clicks")
    cast("LakeTable", table).end_job(idle.job_id)
    assert local_lake.look_after(table, busy.job_id, EAGER, LATER).remark == ""
    assert len(local_lake.versions("clicks")) < len(before)
    assert table.read_head_unchecked(idle.job_id) == lost.head


def test_bills_are_kept_as_long_as_the_history_of_the_table(local_lake: Rig) -> None:
    """The table can be put back to what it keeps, and then the bill that was in force there is needed."""
    table = local_lake.create("clicks", SPEC)
    job, first = opened(table)
    now = datetime.now(UTC)
    bills = [first]
    for number in range(6):
        bills.append(load(job, bills[-1], local_lake.stage(table, some_rows(number, 1), "a"), at=now))
        put_and_commit(table, bills[-1])
    soon = now + timedelta(minutes=5)
    assert local_lake.look_after(table, job.job_id, EAGER, soon).bills_deleted == 0
    local_lake.restore_older("clicks", 5)
    fresh = local_lake.reopen("clicks")
    end = fresh.ends_with(job.job_id)
    assert end == bills[1].head
    assert fresh.bills.read(job.job_id, end).positions == bills[1].positions
