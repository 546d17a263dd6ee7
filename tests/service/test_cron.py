"""A job whose every batch is a process of its own, as with cron: its table is looked after all the same."""

from __future__ import annotations

from pathlib import Path

import deltalake

from tests.console.local import LocalLading

RUNS = 52


def test_a_job_of_many_short_runs_is_looked_after(tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    inbox.mkdir()
    for number in range(RUNS):
        (inbox / f"{number:03}.csv").write_text(f"id\n{number}\n")
        with LocalLading(tmp_path / "home") as lading:
            if number == 0:
                lading.sql(
                    "CREATE TABLE t (id BIGINT) USING delta;"
                    "CREATE JOB j ON STREAMING DO INSERT INTO t SELECT id "
                    f'FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
                )
            lading.run()
    table = tmp_path / "home" / "warehouse" / "default" / "t"
    assert list((table / "_delta_log").glob("*.checkpoint.parquet"))
    assert deltalake.DeltaTable(str(table)).to_pyarrow_table().num_rows == RUNS
