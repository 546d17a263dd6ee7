"""What a batch of a running service asks of the store and of its source: each once. Nothing parses SQL for it, and
nobody waits for it without need."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlglot import Dialect

from lading.service.runtime.runner import JobRunner
from lading.service.scheduling.scheduler import Scheduler
from lading.sources.files.source import FilesSource
from lading.sql.syntax.cursor import Cursor
from lading.store.store import Store
from lading.testing.clock import ManualClock
from tests.console.local import LocalLading

JOB = """CREATE JOB j PROPERTIES ("max_interval" = "1", "file.settle_seconds" = "0") ON STREAMING DO
INSERT INTO shop.t SELECT * FROM FILE("uri" = "{folder}/*.csv", "format" = "csv", "column_separator" = ",")"""
LIMIT_S = 60.0


def test_a_batch_reads_its_record_once_plans_once_and_parses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, committed = Counter[str](), threading.Event()
    load, plan, tell = Store.load_job_by_id, FilesSource.plan, JobRunner.run_once
    begin, tokenize = Cursor.__init__, Dialect.tokenize

    def load_counted(self: Store, *given: Any) -> Any:
        counts["reads"] += 1
        return load(self, *given)

    def plan_counted(self: FilesSource, *given: Any) -> Any:
        found = plan(self, *given)
        counts["plans"] += bool(found)
        return found

    def begin_counted(self: Cursor, *given: Any, **named: Any) -> None:
        counts["parsed"] += 1
        begin(self, *given, **named)

    def tokenize_counted(self: Dialect, *given: Any) -> Any:
        counts["parsed"] += 1
        return tokenize(self, *given)

    def run_counted(self: JobRunner) -> bool:
        before = counts.copy()
        has_more = tell(self)
        record = self.known()
        if record is not None and record.totals is not None and record.totals.rows.loaded == 2:
            counts["reads of the batch"] = counts["reads"] - before["reads"]
            committed.set()
        return has_more

    folder = tmp_path / "in"
    folder.mkdir()
    with LocalLading(tmp_path / "home") as lading:
        lading.sql("CREATE DATABASE shop")
        lading.sql("CREATE TABLE shop.t (id BIGINT, name STRING) USING delta")
        (folder / "a.csv").write_text("1,x\n")
        lading.sql(JOB.format(folder=folder))
        lading.run(["j"])
        monkeypatch.setattr(Store, "load_job_by_id", load_counted)
        monkeypatch.setattr(FilesSource, "plan", plan_counted)
        monkeypatch.setattr(JobRunner, "run_once", run_counted)
        monkeypatch.setattr(Cursor, "__init__", begin_counted)
        monkeypatch.setattr(Dialect, "tokenize", tokenize_counted)
        lading.forget_runner(lading.job("j").job_id)
        scheduler = Scheduler(lading)
        scheduler.start()
        runner = lading.runner(lading.job("j").job_id)
        for _ in range(600):  # Until it is open here, has looked around, and rests.
            if runner.is_idle():
                break
            committed.wait(0.05)
        assert counts["reads"]  # It was opened here, with what CREATE had understood.
        lading.sql("SHOW DATABASES")
        assert counts["parsed"]
        counts.clear()
        (folder / "b.csv").write_text("2,y\n")
        assert committed.wait(LIMIT_S)
        scheduler.close()
    assert counts["reads of the batch"] == 1
    assert counts["plans"] == 1
    assert counts["parsed"] == 0


def test_a_new_job_is_looked_at_at_once(tmp_path: Path) -> None:
    """No time passes by the clock of the service: who waits for it does nothing."""
    folder, loaded = tmp_path / "in", 0
    folder.mkdir()
    (folder / "a.csv").write_text("1,x\n")
    with LocalLading(tmp_path / "home", clock=ManualClock()) as lading:
        scheduler = Scheduler(lading)
        scheduler.start()
        lading.sql("CREATE DATABASE shop")
        lading.sql("CREATE TABLE shop.t (id BIGINT, name STRING) USING delta")
        lading.sql(JOB.format(folder=folder))
        for _ in range(int(LIMIT_S / 0.05)):
            totals = lading.job("j").totals
            loaded = totals.rows.loaded if totals is not None else 0
            if loaded:
                break
            threading.Event().wait(0.05)
        scheduler.close()
    assert loaded == 1
