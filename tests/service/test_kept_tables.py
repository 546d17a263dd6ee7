"""A view opens the table of a job once, and sees what it is each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from lading.service.catalog import kept_tables
from lading.service.views.jobs import JobViews
from lading.tables.delta.table import DeltaLakeTable
from tests.console.local import LocalLading

JOB = """CREATE JOB {name} PROPERTIES ("file.settle_seconds" = "0") ON STREAMING DO
INSERT INTO shop.{name} SELECT * FROM FILE("uri" = "{folder}/*.csv", "format" = "csv", "column_separator" = ",")"""


def test_a_job_is_shown_as_its_table_is_now_and_the_table_is_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, opened, begin = tmp_path / "in", list[str](), DeltaLakeTable.__init__

    def counted(self: DeltaLakeTable, *given: object, **named: object) -> None:
        begin(self, *given, **named)  # type: ignore[arg-type] # as it was called
        opened.append(self.location)

    folder.mkdir()
    with LocalLading(tmp_path / "home") as lading:
        lading.sql("CREATE DATABASE shop")
        for name in ("j", "k"):
            lading.sql(f"CREATE TABLE shop.{name} (id BIGINT, name STRING) USING delta")
            lading.sql(JOB.format(name=name, folder=folder))
        views = JobViews(lading)
        seen = []
        monkeypatch.setattr(DeltaLakeTable, "__init__", counted)
        for file in ("a.csv", "b.csv"):
            (folder / file).write_text("1,x\n")
            lading.run(["j"])
            del opened[:]
            detail = views.one_job("j")
            seen.append((Path(detail.positions[0].at).name, len(opened)))
        assert seen == [("a.csv", 1), ("b.csv", 0)]

        log = Path(lading.catalog.open_table("shop", "j").location.removeprefix("file://")) / "_delta_log"
        log.rename(log.with_name("away"))
        assert views.one_job("j").positions_fault
        log.with_name("away").rename(log)
        assert not views.one_job("j").positions_fault

        monkeypatch.setattr(kept_tables, "MOST", 1)
        views.one_job("k")
        del opened[:]
        views.one_job("j")
        assert len(opened) == 1
