"""Expiry: Lading's own old snapshots go, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from lading.ids import JobId
from lading.model.bill import Bill, Head
from lading.model.job import Job
from lading.model.outcome import Landed
from lading.tables.iceberg.ended import live_anchors
from lading.tables.iceberg.heads import SUMMARY_JOB, summary_of
from lading.tables.iceberg.maintenance import choose_expired
from lading.tables.iceberg.table import IcebergTable
from lading.tables.maintenance import CarePolicy
from tests.console.local import LocalLading
from tests.tables.drive import SPEC, load, new_job, opening, put_and_commit, some_rows
from tests.tables.rig_iceberg import IcebergRig, iceberg_local

NOTHING_OLD = CarePolicy(keep_commits=3, keep_age=timedelta(0), thin_to=timedelta(minutes=30))
LATER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def rig(tmp_path: Path) -> IcebergRig:
    return iceberg_local(tmp_path, None)


def opened(table: IcebergTable) -> tuple[Job, Bill]:
    job = new_job()
    bill = opening(job)
    assert isinstance(put_and_commit(table, bill), Landed)
    return job, bill


def loaded(rig: IcebergRig, table: IcebergTable, job: Job, base: Bill, count: int) -> Bill:
    for number in range(count):
        base = load(job, base, rig.stage(table, some_rows(number * 10, 2), "a"))
        assert isinstance(put_and_commit(table, base), Landed)
    return base


def jobs_of(table: Table) -> list[str]:
    return [summary_of(snapshot).get(SUMMARY_JOB, "") for snapshot in table.metadata.snapshots]


def test_the_newest_commits_of_each_job_stay_and_older_ones_go(rig: IcebergRig) -> None:
    table = rig.create("clicks", SPEC)
    one, first = opened(table)
    two, second = opened(table)
    bill = loaded(rig, table, one, first, 6)
    loaded(rig, table, two, second, 1)
    report = table.look_after(one.job_id, NOTHING_OLD, LATER)
    assert report.snapshots_expired == 4
    assert jobs_of(rig.stranger("clicks")) == [two.job_id, one.job_id, one.job_id, one.job_id, two.job_id]
    assert table.read_head(one.job_id) == bill.head
    assert len(rig.rows(table)) == 14
    assert len(table.files()) == 7


def test_heads_tags_branches_and_strangers_are_not_touched(rig: IcebergRig) -> None:
    table = rig.create("clicks", SPEC)
    idle, idle_head = opened(table)
    rig.append_unrelated("clicks", some_rows(100, 1))
    busy, base = opened(table)
    base = loaded(rig, table, busy, base, 1)
    stranger = rig.stranger("clicks")
    tagged = stranger.metadata.current_snapshot_id
    assert tagged is not None
    stranger.manage_snapshots().create_tag(tagged, "keep").create_branch(tagged, "side").commit()
    loaded(rig, table, busy, base, 8)
    assert table.look_after(busy.job_id, NOTHING_OLD, LATER).snapshots_expired == 5
    metadata = rig.stranger("clicks").metadata
    assert jobs_of(rig.stranger("clicks")) == [idle.job_id, "", *[busy.job_id] * 5]
    assert {name: ref.snapshot_id for name, ref in metadata.refs.items() if name != "main"} == {
        "keep": tagged,
        "side": tagged,
    }
    assert table.read_head(idle.job_id) == idle_head.head
    assert table.look_after(busy.job_id, NOTHING_OLD, LATER).snapshots_expired == 0


def test_manifests_of_expired_snapshots_are_deleted_and_data_files_are_not(rig: IcebergRig) -> None:
    table = rig.create("clicks", SPEC)
    job, first = opened(table)
    base = loaded(rig, table, job, first, 60)
    folder = Path(table.location.removeprefix("file://"))
    before = set((folder / "metadata").glob("*.avro"))
    assert table.look_after(job.job_id, NOTHING_OLD, LATER).snapshots_expired == 58
    left = set((folder / "metadata").glob("*.avro"))
    stranger = rig.stranger("clicks")
    named = {snapshot.manifest_list for snapshot in stranger.metadata.snapshots}
    for snapshot in stranger.metadata.snapshots:
        named |= {manifest.manifest_path for manifest in snapshot.manifests(stranger.io)}
    assert {f"file://{path}" for path in left} == named
    assert len(left) < len(before) / 4
    assert len(list((folder / "data").glob("*.parquet"))) == 60
    loaded(rig, table, job, base, 2)
    assert len(rig.rows(rig.reopen("clicks"))) == 124


def test_nothing_is_expired_while_any_head_is_astray(rig: IcebergRig) -> None:
    table = rig.create("clicks", SPEC)
    gone, first = opened(table)
    busy, base = opened(table)
    loaded(rig, table, gone, first, 1)
    rig.restore_older("clicks", 1)
    loaded(rig, table, busy, base, 8)
    assert table.look_after(busy.job_id, NOTHING_OLD, LATER).snapshots_expired == 0


def test_a_conflict_skips_the_round(rig: IcebergRig) -> None:
    table = rig.create("clicks", SPEC)
    job, first = opened(table)
    loaded(rig, table, job, first, 6)
    send = table.handle.catalog.commit_table

    def overtaken(*arguments: object) -> object:
        rig.append_unrelated("clicks", some_rows(100, 1))
        return send(*arguments)  # type: ignore[arg-type]  # passed on as it came

    table.handle.catalog.commit_table = overtaken  # type: ignore[method-assign, assignment]
    assert table.look_after(job.job_id, NOTHING_OLD, LATER).snapshots_expired == 0
    del table.handle.catalog.commit_table
    assert table.look_after(job.job_id, NOTHING_OLD, LATER).snapshots_expired == 4


def test_old_bills_are_pruned_with_the_snapshots(rig: IcebergRig) -> None:
    table = rig.create("clicks", SPEC)
    job, first = opened(table)
    bill = loaded(rig, table, job, first, 6)
    report = table.look_after(job.job_id, NOTHING_OLD, LATER)
    assert report.bills_deleted > 0
    assert table.bills.heads(job.job_id)[-1] == bill.head
    assert table.bills.read(job.job_id, bill.head) == bill


def committed_now(rig: IcebergRig, count: int, *, clock_is_behind: timedelta) -> tuple[IcebergTable, Job, list[Bill]]:
    """A table of a catalog that others keep, and its bills. `clock_is_behind`: the one that the bills are from."""
    made = rig.create("clicks", SPEC)
    table, job = IcebergTable(replace(made.handle, catalog_name="lake")), new_job()
    bills = [opening(job)]
    put_and_commit(table, bills[0])
    for _ in range(count):
        at = datetime.now(UTC) - clock_is_behind
        bills.append(load(job, bills[-1], rig.stage(table, some_rows(0, 1), "a"), at=at))
        assert isinstance(put_and_commit(table, bills[-1]), Landed)
    return table, job, bills


def expire_but(rig: IcebergRig, kept: set[int]) -> None:
    table = rig.stranger("clicks")
    old = [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id not in kept]
    table.maintenance.expire_snapshots().by_ids(old).commit()


def test_a_rollback_while_bills_are_pruned_keeps_the_one_that_is_loaded_from_again(rig: IcebergRig) -> None:
    """Others roll back, insert and expire the rest between a look at the table and the next one."""
    table, job, bills = committed_now(rig, 6, clock_is_behind=timedelta(0))
    read_head = table.read_head

    def last_look(job_id: JobId) -> Head | None:
        head = read_head(job_id)
        rig.restore_older("clicks", 3)
        rig.append_unrelated("clicks", some_rows(0, 1))
        current = rig.stranger("clicks").metadata.current_snapshot_id
        assert current is not None
        expire_but(rig, {current})
        return head

    table.read_head = last_look  # type: ignore[method-assign]
    table.look_after(job.job_id, CarePolicy(keep_commits=1, keep_age=timedelta(0), grace=timedelta(0)), LATER)
    assert table.ends_with(job.job_id) == bills[3].head
    assert bills[3].head in table.bills.heads(job.job_id)


def test_snapshots_of_a_clock_that_is_ahead_keep_their_bills(rig: IcebergRig) -> None:
    table, job, bills = committed_now(rig, 6, clock_is_behind=timedelta(minutes=5))
    expire_but(rig, {each.snapshot_id for each in rig.stranger("clicks").metadata.snapshots[3:]})
    table.look_after(job.job_id, CarePolicy(keep_commits=1, keep_age=timedelta(0)), LATER)
    assert bills[3].head in table.bills.heads(job.job_id)


def test_history_between_the_newest_and_the_oldest_is_thinned(rig: IcebergRig) -> None:
    table = rig.create("clicks", SPEC)
    job, _ = opened(table)
    metadata = table.handle.load().metadata
    now = datetime(2026, 1, 10, tzinfo=UTC)
    # One commit a minute for two days.
    made = [_snapshot(job, number, now - timedelta(minutes=2880 - number)) for number in range(1, 2881)]
    opening_snapshot = metadata.snapshots[0].model_copy(update={"sequence_number": 2881})
    many = metadata.model_copy(update={"snapshots": [*made, opening_snapshot]})
    policy = CarePolicy(keep_commits=100)
    doomed = choose_expired(many, policy, now)
    assert len(doomed) == 1000  # Work is bounded; the next round takes the rest.
    while doomed:
        gone = {snapshot.snapshot_id for snapshot in doomed}
        many = many.model_copy(update={"snapshots": [each for each in many.snapshots if each.snapshot_id not in gone]})
        doomed = choose_expired(many, policy, now)
    kept = [snapshot for snapshot in many.snapshots if snapshot in made]
    assert kept[-99:] == made[-99:]
    thinned = [snapshot.timestamp_ms for snapshot in kept[:-99]]
    assert thinned[0] >= (now - timedelta(days=1)).timestamp() * 1000
    half_hours = [stamp // 1_800_000 for stamp in thinned]
    assert len(set(half_hours)) == len(half_hours)
    assert 40 <= len(half_hours) <= 48


def _snapshot(job: Job, number: int, at: datetime) -> Snapshot:
    summary = Summary(Operation.APPEND, **{SUMMARY_JOB: job.job_id})
    stored = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": int(at.timestamp() * 1000),
        "manifest-list": f"list-{number}",
    }
    return Snapshot.model_validate({**stored, "summary": summary})


def test_the_head_of_a_dropped_job_does_not_switch_expiry_off(rig: IcebergRig) -> None:
    table = rig.create("clicks", SPEC)
    dropped, first = opened(table)
    busy, base = opened(table)
    last = loaded(rig, table, dropped, first, 1)
    rig.restore_older("clicks", 1)
    loaded(rig, table, busy, base, 8)
    assert table.look_after(busy.job_id, NOTHING_OLD, LATER).snapshots_expired == 0
    table.end_job(dropped.job_id)
    table.end_job(dropped.job_id)
    assert table.look_after(busy.job_id, NOTHING_OLD, LATER).snapshots_expired == 6
    # What it did can still be read.
    assert table.read_head_unchecked(dropped.job_id) == last.head


def test_drop_job_tells_the_table(tmp_path: Path) -> None:
    """From the door."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id\n1\n2\n")
    with LocalLading(tmp_path / "home") as lading:
        lading.sql(
            "CREATE TABLE t (id BIGINT) USING iceberg;"
            f'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT id FROM FILE("uri"="{tmp_path}/in/*.csv", '
            '"format"="csv_with_names", "column_separator"=",")'
        )
        job_id = lading.job("j").job_id
        lading.runner(job_id).run_once()
        lading.sql("DROP JOB WHERE jobname = 'j'")
        table = lading.catalog.open_table("default", "t")
        assert isinstance(table, IcebergTable)
        metadata = table.handle.load().metadata
        assert metadata.properties[f"lading.ended.{job_id}"] == "true"
        assert live_anchors(metadata) == {}
        assert table.scan().num_rows == 2
