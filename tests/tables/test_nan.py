"""NaN is above every number for Spark and DuckDB: no footer and no log may claim a maximum that it exceeds."""

from __future__ import annotations

from typing import cast

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from lading.model.table import Column, TableSpec
from lading.storage.store import open_store
from lading.tables import parquet
from lading.tables.base import LakeTable
from tests.tables.drive import load, new_job, opening, put_and_commit
from tests.tables.rig import Rig

SPEC = TableSpec(
    columns=(
        Column(name="d", type="double", nullable=False),
        Column(name="f", type="float"),
        Column(name="n", type="int"),
    )
)
NAN = float("nan")


def rows(values: list[float]) -> pa.Table:
    floats = [None if value == 2.0 else value for value in values]
    return pa.table(
        {
            "d": pa.array(values, pa.float64()),
            "f": pa.array(floats, pa.float32()),
            "n": pa.array(range(len(values)), pa.int32()),
        },
        schema=pa.schema([pa.field("d", pa.float64(), nullable=False), ("f", pa.float32()), ("n", pa.int32())]),
    )


def committed(rig: Rig, table: LakeTable, *groups: pa.Table) -> list[pq.FileMetaData]:
    job = new_job()
    first = opening(job)
    put_and_commit(table, first)
    staged = rig.stage(table, pa.concat_tables(groups), "a")
    put_and_commit(table, load(job, first, staged))
    filesystem, root = open_store(table.location, table.writer_spec().options).arrow()
    return [pq.read_metadata(f"{root}/{file.path}", filesystem=filesystem) for file in staged]


def bounds(footer: pq.FileMetaData, column: int) -> bool:
    parts = [footer.row_group(group).column(column).statistics for group in range(footer.num_row_groups)]
    return any(part is not None and part.has_min_max for part in parts)


def test_a_file_with_nan_claims_no_bounds_for_that_column(local_lake: Rig) -> None:
    table = cast("LakeTable", local_lake.create("t", SPEC))
    (footer,) = committed(local_lake, table, rows([1.0, 2.0, NAN]))
    assert [bounds(footer, column) for column in range(3)] == [False, False, True]
    (told,) = local_lake.statistics(table)
    assert set(told.lows) == set(told.highs) == {"n"}
    assert told.nulls == {"d": 0, "f": 1, "n": 0}
    assert len(local_lake.rows(table)) == 3


def test_a_file_without_nan_keeps_its_bounds(local_lake: Rig) -> None:
    table = cast("LakeTable", local_lake.create("t", SPEC))
    (footer,) = committed(local_lake, table, rows([1.0, 2.0]))
    assert [bounds(footer, column) for column in range(3)] == [True, True, True]
    (told,) = local_lake.statistics(table)
    assert (told.lows["d"], told.highs["d"]) == (1.0, 2.0)


def test_nan_in_a_later_row_group_begins_another_file(local_lake: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first row group was written with bounds, and a file has one setting for all of its row groups."""
    monkeypatch.setattr(parquet, "_GROUP_BYTES", 1)
    table = cast("LakeTable", local_lake.create("t", SPEC))
    footers = committed(local_lake, table, rows([1.0, 3.0]), rows([NAN]), rows([5.0]))
    assert [(footer.num_rows, bounds(footer, 0)) for footer in footers] == [(2, True), (2, False)]
    assert [told.rows for told in local_lake.statistics(table)].count(2) == 2


def test_a_reader_that_passes_over_row_groups_finds_nan(local_lake: Rig) -> None:
    """Arrow's own filter, as one that trusts footers: NaN is not below 2."""
    table = cast("LakeTable", local_lake.create("t", SPEC))
    committed(local_lake, table, rows([1.0, NAN]))
    filesystem, root = open_store(table.location, table.writer_spec().options).arrow()
    paths = [f"{root}/{path}" for path in table.files()]
    found = ds.dataset(paths, filesystem=filesystem).to_table(filter=~(ds.field("d") < 2.0))
    assert found.num_rows == 1
