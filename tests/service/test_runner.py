"""What becomes of a job when something happens that nobody foresaw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from lading.errors import StorageError
from lading.jobs.batches import MAX_ATTEMPTS
from lading.jobs.record import JobRecord, JobState
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.model.outcome import NotLanded, Outcome, Unknown
from lading.service.compile.compiled import Compiled
from lading.service.runtime.caretaker import Caretaker
from lading.sources.files.source import FilesSource
from lading.tables.base import LakeTable
from lading.tables.delta.table import DeltaLakeTable
from lading.tables.maintenance import CarePolicy
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
    return sorted(lading.catalog.open_table("default", "t").scan()["id"].to_pylist())


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
    runner._caretaker = Caretaker(CarePolicy(every_commits=1), local.clock, local.store)
    runner.run_once()
    assert ids(local) == [1, 2]
    assert runner.record().state is not JobState.PAUSED
    assert "could not be looked after: The disk is full" in caplog.text


def test_an_error_that_nobody_foresaw_is_counted_and_pauses_the_job(
    local: LocalLading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt opened the job again, which took its count back: it was tried for ever, and never PAUSED."""
    commit, failures = DeltaLakeTable.commit, list[float]()

    def fail(table: DeltaLakeTable, expected: Head | None, staged: Sequence[StagedFile], bill: Bill) -> Outcome:
        if not staged:
            return commit(table, expected, staged, bill)
        failures.append(local.clock.monotonic_s())
        msg = "a fault of a library"
        raise AttributeError(msg)

    with monkeypatch.context() as broken:
        broken.setattr(DeltaLakeTable, "commit", fail)
        record = local.run()["j"]
    assert len(failures) == MAX_ATTEMPTS
    waits = [later - earlier for earlier, later in pairwise(failures)]
    assert waits[0] >= 0.25
    assert waits[2] >= 1.0
    assert record.state is JobState.PAUSED
    assert record.reason is not None
    assert "a fault of a library" in record.reason.message
    assert (record.counts.begun, record.counts.failed, record.counts.cancelled) == (1, 1, 0)
    local.sql("RESUME JOB WHERE jobName='j'")
    assert local.run()["j"].state is JobState.RUNNING
    assert ids(local) == [1, 2]
    assert local.verify("j").is_clean


def test_a_source_that_cannot_be_closed_does_not_hide_why_the_job_stopped(
    local: LocalLading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second error took the place of the first one, and left the thread of the job without a word in its record."""
    runner = local.runner(local.job("j").job_id)

    def compile_badly(record: JobRecord) -> tuple[Compiled, LakeTable]:
        compiled, table = local.compile(record)
        source = replace(compiled.source, close=lambda: 1 / 0)  # type: ignore[arg-type]  # it never returns
        return replace(compiled, source=source), table

    runner._tools = replace(runner._tools, compile=compile_badly)
    monkeypatch.setattr(FilesSource, "plan", lambda *given: [][1])
    assert not runner.run_once()
    record = runner.record()
    assert record.state is JobState.PAUSED
    assert record.reason is not None
    assert "list index out of range" in record.reason.message


def test_a_commit_that_landed_before_an_error_is_not_tried_again(
    local: LocalLading, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, failures = DeltaLakeTable.commit, list[Outcome]()

    def land_and_fail(
        table: DeltaLakeTable, expected: Head | None, staged: Sequence[StagedFile], bill: Bill
    ) -> Outcome:
        outcome = commit(table, expected, staged, bill)
        if staged:
            failures.append(outcome)
            msg = "a fault of a library"
            raise AttributeError(msg)
        return outcome

    monkeypatch.setattr(DeltaLakeTable, "commit", land_and_fail)
    record = local.run()["j"]
    assert len(failures) == 1
    assert ids(local) == [1, 2]
    assert (record.state, record.counts.succeeded, record.counts.failed) == (JobState.RUNNING, 1, 0)
