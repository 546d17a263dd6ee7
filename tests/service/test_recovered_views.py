"""A job that `lading recover` brought back shows what a RESUME would use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lading.cli.main import app
from lading.service import facade
from lading.service.views.jobs import JobViews
from tests.console.local import LocalLading, PastClock


def test_a_recovered_job_shows_its_position_its_age_and_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id\n1\n")
    clock = PastClock()
    clock.behind = timedelta(days=400)
    with LocalLading(tmp_path / "home", clock=clock) as lading:
        lading.sql(
            "CREATE TABLE t (id BIGINT) USING delta; CREATE JOB j ON STREAMING DO INSERT INTO t SELECT id "
            f'FROM FILE("uri"="file://{tmp_path}/in/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )
        clock.behind = timedelta(days=3)
        lading.run()
        asked = 'SELECT CurrentOffset, LoadStatistic, ExecuteSql FROM jobs("type"="insert")'
        shown = without_health(lading.sql(asked)[0].rows)
        (begun,) = lading.bills(lading.job("j"), 10)[-1:]
    (tmp_path / "home" / "lading.db").unlink()
    monkeypatch.setattr(facade, "Lading", LocalLading)
    told = CliRunner().invoke(app, ["recover", "--home", str(tmp_path / "home")])
    assert "job j: recovered" in told.output
    assert "secrets" not in told.output, "the place of the files was called a secret"
    with LocalLading(tmp_path / "home") as lading:
        assert without_health(lading.sql(asked)[0].rows) == shown
        assert json.loads(lading.job("j").current_offset) == {"fileName": f"{tmp_path}/in/a.csv"}
        assert lading.job("j").created_at == begun.planned_at
        assert health(lading) == ("needs review", "recovered")
        lading.sql("RESUME JOB WHERE jobName='j'")
        lading.run()
        lading.sql("PAUSE JOB WHERE jobName='j'")
        assert health(lading) == ("paused", "by a user")
        assert lading.catalog.open_table("default", "t").scan().num_rows == 1


def health(lading: LocalLading) -> tuple[str, str]:
    (job,) = JobViews(lading).list_jobs()
    return job.health.state.value, job.health.note


def without_health(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """A job that was recovered waits for somebody to look; all else is as it was."""
    found = []
    for offset, statistic, text in rows:
        told = json.loads(statistic)
        assert told.pop("health")
        found.append((offset, told, text))
    return found
