"""Every row is filed under its own partition values."""

from __future__ import annotations

import re
from urllib.parse import quote

import pyarrow as pa
import pytest

from lading.model.table import Column, PartitionField, TableSpec
from lading.tables.delta.partitions import folder_of
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


@pytest.mark.parametrize("text", ["東" * 60, "ä" * 90, "%" * 90, "x" * 190 + "ü" * 3, "🙂" * 40, "a" * 300])
def test_the_folder_of_a_long_value_shows_no_part_of_it(text: str) -> None:
    """Polars takes what stands behind `=` for the value: a part of it would be a wrong value."""
    name = folder_of(["größe"], [text])
    assert re.fullmatch(r"grC3B6C39Fe-[0-9a-f]{16}", name)
    assert folder_of(["größe"], [text + "x"]) != name


def test_a_value_that_is_not_long_is_whole_in_its_folder() -> None:
    assert folder_of(["city"], ["東" * 21]) == f"city={quote('東' * 21)}"
    many = folder_of([f"c{number}" for number in range(8)], ["x" * 90] * 8)
    assert "=" not in many
    assert len(many) < 600
