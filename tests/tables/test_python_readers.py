"""What Polars and DuckDB read from tables that Lading wrote: all rows, also behind a filter, and every value."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pytest

from tests.tables.drive import load, new_job, opening, put_and_commit
from tests.tables.rig import Rig
from tests.tables.rig_delta import delta_local
from tests.tables.rig_iceberg import iceberg_local
from tests.tables.test_jvm_readers import PLACES, SPEC, rows


def make(rig: Rig, places: list[str | None]) -> None:
    """A table with the rows whose places are these."""
    table, job = rig.create("t", SPEC), new_job()
    first = opening(job)
    put_and_commit(table, first)
    chosen = rows().filter([place in places for place in PLACES])
    put_and_commit(table, load(job, first, rig.stage(table, chosen, "a")))


def polars_of(form: str, folder: Path) -> pl.LazyFrame:
    if form == "delta":
        return pl.scan_delta(str(folder / "lake" / "t"))
    return pl.scan_iceberg(iceberg_local(folder, None).stranger("t").metadata_location)


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_polars_reads_what_was_loaded(form: str, tmp_path: Path) -> None:
    short = [place for place in PLACES if place is None or len(place) < 50]
    make(delta_local(tmp_path, None) if form == "delta" else iceberg_local(tmp_path, None), short)
    read = polars_of(form, tmp_path).sort("id").collect()
    assert read["place"].to_list() == short
    above = polars_of(form, tmp_path).filter(pl.col("d") > 100).collect()
    # NaN is above every number.
    assert above["id"].to_list() == [1, 4]
    assert {moment.timestamp() for moment in read["at"].to_list()} == {rows()["at"][0].as_py().timestamp()}


def test_duckdb_skips_no_row_that_a_filter_wants(tmp_path: Path) -> None:
    """It trusts the bounds in the footers of data files."""
    for rig in (delta_local(tmp_path, None), iceberg_local(tmp_path, None)):
        make(rig, PLACES)
    files = sorted(str(path) for path in tmp_path.rglob("*.parquet"))
    read = duckdb.connect().execute(
        f"SELECT id FROM read_parquet({files}, hive_partitioning = false) WHERE d > 100 ORDER BY id"
    )
    assert [number for (number,) in read.fetchall()] == [1, 1, 4, 4, 5, 5]
