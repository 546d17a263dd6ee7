"""What is wrong with a job, as one sentence and the value that is to blame."""

from __future__ import annotations

from pathlib import Path

import pytest

from lading.errors import ConfigError, SqlError
from lading.jobs.reasons import ReasonCode
from lading.jobs.record import JobKind, WindowLimits
from lading.service import operations
from lading.service.views.jobs import JobViews
from lading.service.views.problems import MOST_LETTERS, problem_of
from tests.console.local import LocalLading
from tests.jobs.story import Story, failure
from tests.service.edit_rig import OLD, job
from tests.service.routine_fakes import Desk, bench

__all__ = ["bench", "job"]

STRICT = (
    "Insert has filtered data in strict mode: 1 of 550 rows are bad; the first: /in/0118.csv, row 422: column amount: "
    "cannot read 'n/a' as decimal(10,2). Nothing was committed; the position is unchanged. Fix the bad rows."
)
ALLOWED = {"session.enable_insert_strict": "false", "session.enable_strict_cast": "true"}
"""Without the second, what cannot be read would be NULL, and nothing would go to quarantine."""


def paused(message: str, code: ReasonCode = ReasonCode.TOO_MANY_FAILURE_ROWS_ERR) -> Story:
    told = Story().open()
    told.begin()
    told.fail(failure(message, code=code, retry=False))
    return told


def test_bad_rows_are_a_sentence_a_value_a_place_and_what_would_allow_them() -> None:
    problem = problem_of(paused(STRICT).record)
    assert problem is not None
    assert problem.sentence == "1 of 550 rows is bad: column amount cannot be read as decimal(10,2)."
    assert (problem.value, problem.file, problem.row) == ("n/a", "/in/0118.csv", 422)
    assert (problem.allow, problem.detail) == (ALLOWED, STRICT)
    ratio = STRICT.replace("Insert has filtered data in strict mode", "too many filtered rows")
    problem = problem_of(paused(ratio).record)
    assert problem is not None
    assert problem.allow == {"session.insert_max_filter_ratio": "1"}


@pytest.mark.parametrize("value", ["it's; the first: x, row 9: y", "<b>", "a. Nothing was committed", "'" * 500, "\n"])
def test_any_value_makes_a_problem_that_can_be_shown(value: str) -> None:
    problem = problem_of(paused(STRICT.replace("n/a", value)).record)
    assert problem is not None
    assert problem.sentence
    assert len(problem.sentence) <= MOST_LETTERS
    assert (problem.file, problem.row) == ("/in/0118.csv", 422)


def test_another_error_is_its_first_sentence() -> None:
    problem = problem_of(
        paused("The bucket is gone. Nothing was changed. Make it.", ReasonCode.CANNOT_RESUME_ERR).record
    )
    assert problem is not None
    assert (problem.sentence, problem.has_bad_rows, problem.allow) == ("The bucket is gone.", False, {})


def test_a_routine_load_is_allowed_as_many_as_it_had() -> None:
    told = Story(JobKind.ROUTINE, window=WindowLimits(max_errors=2)).open()
    told.begin()
    told.commit(rows=10, bad=3)
    problem = problem_of(told.record)
    assert problem is not None
    assert problem.sentence == "3 of 10 rows are bad."
    assert problem.allow == {"max_error_number": "3", "max_filter_ratio": "1"}


def test_nothing_is_wrong_with_a_job_that_runs_or_that_a_user_paused() -> None:
    told = Story().open()
    assert problem_of(told.record) is None
    told.pause()
    assert problem_of(told.record) is None


def test_bad_rows_are_allowed_and_the_job_goes_on(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id\n1\nx\n")
    with LocalLading(tmp_path / "home") as lading:
        lading.sql(
            'CREATE TABLE t (id BIGINT) USING delta; CREATE JOB j PROPERTIES ("file.settle_seconds"="0") '
            "ON STREAMING DO INSERT INTO t SELECT id "
            f'FROM FILE("uri"="{tmp_path}/in/*.csv", "format"="csv_with_names")'
        )
        lading.run()
        (job,) = JobViews(lading).list_jobs()
        assert job.problem is not None
        assert (job.health.state.value, job.problem.value) == ("needs review", "x")
        session = lading.session("ann", is_trusted=True)
        operations.allow_bad_rows(session, lading.job("j"), job.problem.allow, reason="known")
        lading.run()
        (job,) = JobViews(lading).list_jobs()
        assert (job.problem, job.totals.rows.loaded, job.totals.rows.error) == (None, 1, 1)
        (alter,) = [entry for entry in JobViews(lading).audit("j") if entry.action == "ALTER"]
        assert all(f'"{name}" = "{value}"' in alter.statement for name, value in ALLOWED.items())
        assert "known" in f"{alter.statement} {alter.facts}"


def test_a_text_to_edit_changes_nothing_and_one_to_copy_makes_another_job(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with LocalLading(tmp_path / "home") as lading:
        lading.sql(
            "CREATE TABLE t (id BIGINT) USING delta; CREATE JOB a ON STREAMING DO INSERT INTO t SELECT id "
            f'FROM FILE("uri"="{tmp_path}/in/*.csv", "format"="csv_with_names")'
        )
        session, record = lading.session("ann", is_trusted=True), lading.job("a")
        text = operations.alter_text(session, record)
        assert "INSERT INTO" in text
        lading.sql("PAUSE JOB WHERE jobname = 'a'")
        with pytest.raises(SqlError, match="No properties or sql changed"):
            session.execute(operations.alter_of(session, record, text))
        for other in (text.replace("JOB a", "JOB b"), f"{text}; {text}", "SHOW JOBS"):
            with pytest.raises(ConfigError, match="not one ALTER of a"):
                operations.alter_of(session, record, other)
        lading.sql(operations.copy_text(session, record))
        assert "JOB a_copy2" in operations.copy_text(session, record)


def test_texts_of_a_job_with_keys_have_none(job: Desk) -> None:
    session = job.lading.session("ann", is_trusted=True)
    record = next(stored.record for stored in job.lading.store.list_jobs())
    assert operations.has_keys(session, record)
    text = operations.alter_text(session, record)
    assert "FROM KAFKA" not in text
    assert operations.alter_of(session, record, text)
    for shown in (text, operations.copy_text(session, record)):
        assert OLD not in shown
        assert "sasl.password" not in shown
