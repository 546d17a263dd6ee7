"""Defaults that another engine gave to columns of a Delta table are written, or the job is refused: never NULL."""

from __future__ import annotations

from pathlib import Path

import pytest

from lading.errors import ConfigError
from lading.pipeline.stage import Stage
from lading.service.compile.compiled import Compiled
from lading.service.runtime.context import CancellableStager
from tests.console.local import LocalLading
from tests.tables.delta_by_hand import change_field


class WatchedLading(LocalLading):
    """Shows what Spark would be given."""

    staged: Stage | None = None

    def _stager(self, compiled: Compiled) -> CancellableStager:
        self.staged = compiled.stage
        return super()._stager(compiled)


@pytest.fixture
def lading(tmp_path: Path) -> WatchedLading:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id\n1\n")
    lading = WatchedLading(tmp_path / "home")
    lading.sql("CREATE TABLE t (id BIGINT, city STRING) USING delta")
    return lading


def give_default(tmp_path: Path, text: str) -> None:
    """ALTER TABLE t ALTER COLUMN city SET DEFAULT …, by Spark."""
    location = tmp_path / "home" / "warehouse" / "default" / "t"
    change_field(location, "city", metadata={"CURRENT_DEFAULT": text, "EXISTS_DEFAULT": text})


def job(tmp_path: Path, columns: str = "id") -> str:
    source = f'FILE("uri"="{tmp_path}/in/*.csv", "format"="csv_with_names", "column_separator"=",")'
    return f"CREATE JOB j ON STREAMING DO INSERT INTO t ({columns}) SELECT {columns} FROM {source}"


@pytest.mark.parametrize("text", ["'unknown'", "NULL", "-1.5e3", "DATE '2026-01-01'", "current_timestamp()"])
def test_a_default_fills_a_column_that_the_job_does_not(lading: WatchedLading, tmp_path: Path, text: str) -> None:
    give_default(tmp_path, text)
    with lading:
        lading.sql(job(tmp_path))
        lading.runner(lading.job("j").job_id).run_once()
        assert lading.staged is not None
        assert [column.expression for column in lading.staged.mapping.columns][1] == text


@pytest.mark.parametrize("text", ["uuid()", "java_method('a', 'b')", "'a' || id", "'it''s'", "1; DROP", "(SELECT 1)"])
def test_a_default_that_is_computed_is_refused(lading: WatchedLading, tmp_path: Path, text: str) -> None:
    give_default(tmp_path, text)
    with lading:
        try:
            lading.sql(job(tmp_path))
            lading.runner(lading.job("j").job_id).run_once()
            said = str(lading.job("j").reason)
        except ConfigError as error:
            said = str(error)
        assert "Column city of the table has a default that Lading does not compute" in said
        assert lading.catalog.open_table("default", "t").scan().num_rows == 0
