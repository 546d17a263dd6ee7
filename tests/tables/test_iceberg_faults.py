"""Faults of Iceberg tables that were found by use."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lading.model.outcome import Landed
from lading.model.table import Column, PartitionField, TableSpec
from tests.tables.drive import SPEC, ids, load, new_job, opening, put_and_commit, some_rows
from tests.tables.rig_iceberg import IcebergRig, iceberg_local


@pytest.fixture
def rig(tmp_path: Path) -> IcebergRig:
    return iceberg_local(tmp_path, None)


def test_a_partition_column_that_was_dropped_does_not_stop_commits(rig: IcebergRig) -> None:
    """Manifests of the old partitioning were due to be merged, with a schema that lacks its column."""
    spec = TableSpec(
        columns=(*SPEC.columns, Column(name="day", type="int")),
        partition_by=(PartitionField(column="day"),),
        properties={"commit.manifest.min-count-to-merge": "5"},
    )
    table, job = rig.create("clicks", spec), new_job()
    base = opening(job)
    put_and_commit(table, base)
    for number in range(5):
        rows = some_rows(number, 1).append_column("day", pa.array([number % 3], pa.int32()))
        base = load(job, base, rig.stage(table, rows, "a"))
        put_and_commit(table, base)
    with rig.stranger("clicks").update_spec() as update_spec:
        update_spec.remove_field("day")
    with rig.stranger("clicks").update_schema() as update_schema:
        update_schema.delete_column("day")
    table = rig.reopen("clicks")
    for number in range(5, 18):
        base = load(job, base, rig.stage(table, some_rows(number, 1), "a"))
        assert isinstance(put_and_commit(table, base), Landed)
    assert ids(rig, table) == list(range(18))
    current = rig.stranger("clicks").current_snapshot()
    assert current is not None
    assert len(current.manifests(table.handle.load().io)) <= 12  # Those of the new partitioning are merged.
