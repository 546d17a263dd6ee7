"""A job whose every batch is a process of its own, as with cron: its table is looked after all the same."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import deltalake
import pytest

from tests.console.local import LocalLading, PastClock

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


def test_the_store_forgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start, and each round of care, removes what would make every look dearer."""
    monkeypatch.setattr("lading.service.runtime.caretaker.KEPT_BILLS", 7)
    inbox = tmp_path / "in"
    inbox.mkdir()
    clock = PastClock()
    job = (
        "CREATE JOB j PROPERTIES('s3.max_batch_files'='1') ON STREAMING DO INSERT INTO t SELECT id "
        f'FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")'
    )
    with LocalLading(tmp_path / "home", clock=clock) as lading:
        lading.sql(f"CREATE TABLE t (id BIGINT) USING delta; {job}")
        for number in range(RUNS):
            (inbox / f"{number:03}.csv").write_text(f"id\n{number}\n")
        lading.run()
        job_id = lading.job("j").job_id
        assert 7 <= len(lading.store.list_bills(job_id)) < 12
        assert lading.store.read_totals()[job_id].rows.loaded == RUNS
        clock.behind = timedelta(days=40)
        lading.sql("DROP JOB WHERE jobname = 'j'")
        clock.behind = timedelta(0)
    with LocalLading(tmp_path / "home") as lading:
        assert lading.store.list_jobs(include_final=True) == []
        assert lading.store.read_totals() == {}
