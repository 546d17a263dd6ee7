"""Every row is filed under its own partition values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lading.model.table import Column, PartitionField, TableSpec
from tests.tables.drive import load, new_job, opening, put_and_commit
from tests.tables.rig import Rig


@pytest.mark.parametrize(("fields", "distinct"), [(9, 255), (17, 15), (33, 3)])
def test_many_partition_columns_do_not_share_a_number(local_lake: Rig, fields: int, distinct: int) -> None:
    """(distinct + 1) ** (fields - 1) is 2 ** 64: the product of dictionary sizes is nothing in 64 bits."""
    names = [f"p{number}" for number in range(fields)]
    columns = tuple(Column(name=name, type="int") for name in [*names, "id"])
    parts = tuple(PartitionField(column=name) for name in names)
    table = local_lake.create("wide", TableSpec(columns=columns, partition_by=parts))
    # One row per value, so that every dictionary is long; then two rows that differ in the first column alone.
    data = {name: [*range(distinct), 0, 0] for name in names}
    data["p0"][-1] = 1
    data["id"] = list(range(distinct + 2))
    rows = pa.table({name: pa.array(values, pa.int32()) for name, values in data.items()})
    job = new_job()
    first = opening(job)
    put_and_commit(table, first)
    put_and_commit(table, load(job, first, local_lake.stage(table, rows, "a")))
    assert sorted(local_lake.rows(table), key=lambda row: row["id"]) == rows.to_pylist()
