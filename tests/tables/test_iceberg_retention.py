"""Expiry keeps what the table's own settings say to keep."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import pytest
from pyiceberg.table import Table
from pyiceberg.table.snapshots import ancestors_of

from lading.model.bill import Bill
from lading.model.job import Job
from lading.model.s3_access import S3Access
from lading.model.table import TableSpec
from lading.tables.iceberg.catalog import open_catalog
from lading.tables.iceberg.table import IcebergTable
from lading.tables.maintenance import CarePolicy
from tests.tables.drive import SPEC, load, new_job, opening, put_and_commit, some_rows
from tests.tables.rig_iceberg import IcebergRig, iceberg_local

EAGER = CarePolicy(keep_commits=3, keep_age=timedelta(0), grace=timedelta(0))

DAY_MS = 86_400_000


@pytest.fixture
def rig(tmp_path: Path) -> IcebergRig:
    return iceberg_local(tmp_path, None)


def soon() -> datetime:
    """A moment after every commit there is."""
    return datetime.now(UTC) + timedelta(minutes=1)


def made(
    rig: IcebergRig, commits: int, properties: Mapping[str, str] = MappingProxyType({})
) -> tuple[IcebergTable, Job]:
    table, job = rig.create("clicks", TableSpec(columns=SPEC.columns, properties=properties)), new_job()
    base = opening(job)
    put_and_commit(table, base)
    more(rig, table, job, base, commits)
    return table, job


def more(rig: IcebergRig, table: IcebergTable, job: Job, base: Bill, commits: int) -> None:
    for number in range(commits):
        base = load(job, base, rig.stage(table, some_rows(number, 1), "a"))
        put_and_commit(table, base)


def line(table: Table) -> int:
    """How far an incremental reader can follow the commits back."""
    return len(list(ancestors_of(table.current_snapshot(), table.metadata)))


SETTINGS = [
    ({"gc.enabled": "false"}, 9, "gc.enabled is false"),
    ({"gc.enabled": "nope"}, 9, "gc.enabled is 'nope'"),
    ({"history.expire.max-snapshot-age-ms": str(365 * DAY_MS)}, 9, ""),
    ({"history.expire.max-snapshot-age-ms": "5 days"}, 9, "max-snapshot-age-ms is '5 days'"),
    ({"history.expire.min-snapshots-to-keep": "6"}, 6, ""),
    ({"history.expire.min-snapshots-to-keep": "many"}, 9, "min-snapshots-to-keep is 'many'"),
    ({}, 3, ""),
]


@pytest.mark.parametrize(("properties", "kept", "remark"), SETTINGS, ids=lambda value: str(value)[:60])
def test_the_settings_are_the_least_that_is_kept(
    rig: IcebergRig, properties: dict[str, str], kept: int, remark: str
) -> None:
    table, job = made(rig, 8, properties)
    report = table.look_after(job.job_id, EAGER, soon())
    assert remark in report.remark
    assert bool(report.remark) == bool(remark)
    assert line(rig.stranger("clicks")) == len(rig.versions("clicks")) == kept


def test_nothing_goes_within_the_time_of_grace(rig: IcebergRig) -> None:
    table, job = made(rig, 8)
    policy = CarePolicy(keep_commits=3, keep_age=timedelta(0))
    assert table.look_after(job.job_id, policy, soon()).snapshots_expired == 0
    assert table.look_after(job.job_id, policy, soon() + timedelta(hours=2)).snapshots_expired == 6


def test_a_branch_keeps_its_own_line(rig: IcebergRig) -> None:
    table, job = made(rig, 8)
    stranger = rig.stranger("clicks")
    old = stranger.metadata.snapshots[5].snapshot_id
    stranger.manage_snapshots().create_branch(old, "side", min_snapshots_to_keep=4).commit()
    table.look_after(job.job_id, EAGER, soon())
    metadata = rig.stranger("clicks").metadata
    assert len(list(ancestors_of(metadata.snapshot_by_id(old), metadata))) == 4


def test_a_tag_that_is_made_meanwhile_stays(rig: IcebergRig) -> None:
    """Between Lading's look at the table and its commit somebody tags a snapshot that is to go."""
    table, job = made(rig, 8)
    send, old = table.handle.catalog.commit_table, rig.stranger("clicks").metadata.snapshots[2].snapshot_id

    def tagged_before(*arguments: object) -> object:
        del table.handle.catalog.commit_table
        rig.stranger("clicks").manage_snapshots().create_tag(old, "end-of-month").commit()
        return send(*arguments)  # type: ignore[arg-type]  # passed on as it came

    table.handle.catalog.commit_table = tagged_before  # type: ignore[method-assign, assignment]
    assert table.look_after(job.job_id, EAGER, soon()).snapshots_expired == 0
    assert table.look_after(job.job_id, EAGER, soon()).snapshots_expired == 5
    metadata = rig.stranger("clicks").metadata
    assert metadata.refs["end-of-month"].snapshot_id == old
    assert metadata.snapshot_by_id(old) is not None


def test_a_table_whose_files_are_shared_can_be_read_under_its_other_name(rig: IcebergRig) -> None:
    """`gc.enabled=false`: old metadata files are kept as well, unless the statement says otherwise."""
    table, job = made(rig, 3, {"gc.enabled": "false", "write.metadata.previous-versions-max": "2"})
    catalog = open_catalog(rig.catalog, S3Access())
    kept = catalog.register_table("lake.kept", rig.stranger("clicks").metadata_location)
    assert kept.scan().to_arrow().num_rows == 3
    head = table.read_head(job.job_id)
    assert head is not None
    more(rig, table, job, table.bills.read(job.job_id, head), 5)
    table.look_after(job.job_id, EAGER, soon())
    assert catalog.load_table("lake.kept").scan().to_arrow().num_rows == 3
