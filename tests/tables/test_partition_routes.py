"""Every row is filed under its own partition values."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pyarrow as pa
import pytest

from lading.model.table import Column, PartitionField, TableSpec
from lading.tables.folders import short_name
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


@pytest.mark.parametrize("text", ["東" * 60, "ä" * 90, "%" * 90, "x" * 99 + "ü", "🙂" * 40, "a" * 200])
@pytest.mark.parametrize("before", range(4))
def test_a_folder_name_is_not_cut_inside_a_character(text: str, before: int) -> None:
    """Polars refused such a table: half of an escape, or of a character, is no text."""
    name = short_name(f"{'c' * before}={quote(text, safe='')}")
    kept, _, digest = name.rpartition("-")
    assert len(digest) == 16
    assert 80 <= len(kept) <= 100
    assert f"{'c' * before}={text}".startswith(unquote(kept, errors="strict"))
