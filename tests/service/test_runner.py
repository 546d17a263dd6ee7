"""What becomes of a job when something happens that nobody foresaw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lading.errors import StorageError
from lading.jobs.record import JobState
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.model.outcome import NotLanded, Outcome, Unknown
from lading.tables.care import CarePolicy
from lading.tables.delta.table import DeltaLakeTable
from tests.console.local import LocalLading
from tests.service import routine_fakes
from tests.service.routine_fakes import Desk, FakeKafka
from tests.service.routine_words import KAFKA

bench = routine_fakes.bench


def test_an_error_that_nobody_foresaw_is_told_in_the_record(bench: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that looked healthy and loaded nothing: only the log knew."""
    bench.sql(f"CREATE ROUTINE LOAD j ON t {KAFKA.format('')}")
    bench.run()
    with monkeypatch.context() as broken:
        broken.setattr(FakeKafka, "plan", lambda *words: 1 / 0)
        assert not bench.lading.runner(bench.lading.any_job("shop.j").job_id).is_idle()
        bench.run()
        record = bench.lading.any_job("shop.j")
        assert record.state is JobState.PAUSED
        assert "division by zero" in str(bench.show()["ReasonOfStateChanged"])
        assert record.auto_resume.next_at is not None
    bench.sql("RESUME ROUTINE LOAD FOR j")
    bench.run()
    assert bench.show()["State"] == "RUNNING"


# With tables, and without Spark.


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalLading]:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,city\n1,essen\n2,bonn\n")
    with LocalLading(tmp_path / "home") as lading:
        lading.sql(
            "CREATE TABLE t (id BIGINT, city STRING) USING delta;"
            f'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT id, city FROM FILE("uri"="{tmp_path}/in/*.csv", '
            '"format"="csv_with_names", "column_separator"=",")'
        )
        yield lading


def ids(lading: LocalLading) -> list[int]:
    return sorted(lading.shelf.open_table("default", "t").scan()["id"].to_pylist())


@pytest.mark.parametrize("lands", [True, False])
def test_a_batch_whose_answer_was_lost_is_settled_also_when_the_service_ends(
    local: LocalLading, monkeypatch: pytest.MonkeyPatch, lands: bool
) -> None:
    """Cut off between two attempts it was told as cancelled, and its rows were in the table."""
    runner, commit, answers = local.runner(local.job("j").job_id), DeltaLakeTable.commit, list[Outcome]()

    def lose_one(table: DeltaLakeTable, expected: Head | None, staged: Sequence[StagedFile], bill: Bill) -> Outcome:
        if not staged or answers:
            return commit(table, expected, staged, bill)
        runner.halt()
        answers.append(commit(table, expected, staged, bill) if lands else NotLanded(why="lost on the way"))
        return Unknown(why="the answer was lost")

    monkeypatch.setattr(DeltaLakeTable, "commit", lose_one)
    runner.run_once()
    assert answers
    assert ids(local) == [1, 2]
    record = runner.record()
    assert record.totals is not None
    assert record.totals.rows.loaded == 2
    assert record.last_seen == local.bills(record, 1)[0].head


def test_a_table_that_cannot_be_looked_after_has_its_rows(
    local: LocalLading, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*given: object) -> None:
        msg = "The disk is full"
        raise StorageError(msg, left="Nothing was deleted.", todo="Make room.")

    monkeypatch.setattr(DeltaLakeTable, "look_after", fail)
    runner = local.runner(local.job("j").job_id)
    runner._tools = replace(runner._tools, care=CarePolicy(every_commits=1))
    runner.run_once()
    assert ids(local) == [1, 2]
    assert runner.record().state is not JobState.PAUSED
    assert "could not be looked after: The disk is full" in caplog.text
