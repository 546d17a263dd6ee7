"""SKIP FILE and LOAD FILE: one file is left out, or loaded after all, by an edit that is in the commit. Without Spark:
a job that would read anything needs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lading.cli.main import app
from lading.errors import DeniedError, JobStateError, SqlError
from lading.model.bill import Bill
from lading.service.edits import edit
from lading.service.facade import Lading
from lading.sql.statements.jobs import AlterJob, ExplainAlter
from lading.sql.syntax.parse import parse_statement
from lading.testing.marked import secret
from tests.service.file_edit_rig import paused
from tests.service.routine_fakes import Desk as Bench

__all__ = ["paused"]


class Killed(BaseException):
    """The process ends here."""


def newest(bench: Bench) -> Bill:
    return bench.lading.bills(bench.lading.any_job("j"), 1)[0]


def aside(bench: Bench) -> dict[str, str]:
    """As EXPLAIN JOB says it, with names instead of paths."""
    rows = {str(what): str(how) for what, how in bench.sql("EXPLAIN JOB j") if str(what).startswith("files ")}
    return {what: ", ".join(Path(each).name for each in how.split(", ")) for what, how in rows.items()}


def shown(bench: Bench, column: str) -> str:
    return str(bench.sql(f'SELECT {column} FROM jobs("type"="insert")')[0][0])


def test_a_file_that_is_left_out_is_not_read_and_everybody_is_told(paused: Bench) -> None:
    before = newest(paused)
    said = paused.lading.sql("SKIP FILE 'c.csv' FOR JOB j COMMENT 'broken at the sender'")[-1]
    assert "c.csv is not read by the job from now on" in str(said.message)
    after = newest(paused)
    assert (after.epoch, after.seq, after.kind.value) == (before.epoch + 1, before.seq + 1, "edit")
    assert "SKIP FILE" in after.reason and "c.csv: broken at the sender" in after.reason  # noqa: PT018
    assert [state.at for state in after.positions.partitions.values()] == [
        state.at for state in before.positions.partitions.values()
    ]
    assert aside(paused) == {"files left out": "c.csv"}
    entry = next(row for row in paused.sql("SHOW LOAD AUDIT FOR j") if row[2] == "ALTER")
    facts = json.loads(str(entry[4]))
    assert (Path(facts["file"]).name, str(entry[1])) == ("c.csv", "ann")
    assert "broken at the sender" in facts["why"]
    paused.sql("RESUME JOB j")
    paused.run()
    assert shown(paused, "Status") == "RUNNING", "it would need Spark to read it"
    paused.restart()
    paused.run()
    assert (shown(paused, "Status"), aside(paused)) == ("RUNNING", {"files left out": "c.csv"})


def test_a_look_changes_nothing(paused: Bench) -> None:
    before = newest(paused)
    (row,) = paused.sql("EXPLAIN SKIP FILE 'c.csv' FOR JOB j")
    assert (row[3], row[5], row[6]) == ("SAME", "1", "files")
    assert "c.csv is not read" in str(row[7])
    assert newest(paused) == before
    assert aside(paused) == {}


def test_a_file_that_may_have_been_loaded_is_not_loaded_again_without_a_word(paused: Bench) -> None:
    paused.sql("SKIP FILE 'a.csv' FOR JOB j; SKIP FILE 'c.csv' FOR JOB j")
    assert "its rows come twice" in str(paused.sql("EXPLAIN LOAD FILE 'a.csv' FOR JOB j")[0][7])
    assert "twice" not in str(paused.sql("EXPLAIN LOAD FILE 'c.csv' FOR JOB j")[0][7]), "it is after the position"


def test_undo_takes_it_back_and_so_does_load_file(paused: Bench) -> None:
    paused.sql("SKIP FILE 'c.csv' FOR JOB j; UNDO ALTER JOB j")
    assert aside(paused) == {}
    paused.sql("SKIP FILE 'c.csv' FOR JOB j; LOAD FILE 'c.csv' FOR JOB j")
    assert aside(paused) == {}
    with pytest.raises(SqlError, match=r"c\.csv was neither left out nor put aside"):
        paused.sql("LOAD FILE 'c.csv' FOR JOB j")


def test_it_stays_left_out_when_the_position_is_moved_back(paused: Bench) -> None:
    offset = json.dumps({"fileName": f"{paused.path}/in/a.csv"})
    paused.sql("SKIP FILE 'c.csv' FOR JOB j; SKIP FILE 'b.csv' FOR JOB j")
    paused.sql(f"ALTER JOB j PROPERTIES('offset'='{offset}')")
    assert aside(paused) == {"files left out": "c.csv, b.csv"}
    paused.sql("RESUME JOB j")
    paused.run()
    assert shown(paused, "Status") == "RUNNING"


@pytest.mark.parametrize("when", ["commit.before", "commit.after", "record"])
def test_a_kill_in_the_middle_leaves_it_as_it_was_or_done(
    paused: Bench, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    commit = edit._commit_move

    def die_after(*parts: Any) -> Any:
        commit(*parts)
        raise Killed

    def die_at(steps: Any) -> Any:
        for name in steps:
            if name == when:
                raise Killed
        raise AssertionError

    with monkeypatch.context() as patch:
        if when == "record":
            patch.setattr(edit, "_commit_move", die_after)
        else:
            patch.setattr("lading.service.edits.edit.run_steps", die_at)
        with pytest.raises(Killed):
            paused.sql("SKIP FILE 'c.csv' FOR JOB j")
    paused.restart()
    is_done = when != "commit.before"
    assert aside(paused) == ({"files left out": "c.csv"} if is_done else {})
    if not is_done:
        paused.sql("SKIP FILE 'c.csv' FOR JOB j")
    paused.sql("RESUME JOB j")
    paused.run()
    assert (shown(paused, "Status"), aside(paused)) == ("RUNNING", {"files left out": "c.csv"})
    audit = [row for row in paused.sql("SHOW LOAD AUDIT FOR j") if row[2] == "ALTER"]
    assert len(audit) == 1


def test_it_survives_a_lost_store(paused: Bench) -> None:
    paused.sql("SKIP FILE 'c.csv' FOR JOB j")
    paused.lading.close()
    home = paused.path / "home"
    for path in home.glob("lading.db*"):
        path.unlink()
    assert CliRunner().invoke(app, ["recover", "--home", str(home)]).exit_code == 0
    paused.lading = Lading(home, user="ann")
    paused.sql("USE shop")
    assert aside(paused) == {"files left out": "c.csv"}
    paused.sql("RESUME JOB j")
    paused.run()
    assert shown(paused, "Status") == "RUNNING"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SKIP FILE '/elsewhere/c.csv' FOR JOB j", "is not a file of the job"),
        ("SKIP FILE 'c.json' FOR JOB j", "is not a file of the job"),
        ("SKIP FILE '' FOR JOB j", "is not a file of the job"),
        ("ALTER JOB j PROPERTIES('file.skip'='c.csv', 'max_interval'='5')", "cannot be changed together"),
        ("ALTER JOB j PROPERTIES('file.skip'='c.csv', 'file.load'='b.csv')", "cannot be changed together"),
        ("ALTER JOB j PROPERTIES('file.skip'='c.csv', 'state'='RESET')", "goes alone"),
    ],
)
def test_what_is_refused(paused: Bench, statement: str, message: str) -> None:
    before = newest(paused)
    with pytest.raises(SqlError, match=message):
        paused.sql(statement)
    assert newest(paused) == before


def test_a_job_that_runs_is_paused_first(paused: Bench) -> None:
    paused.sql("SKIP FILE 'c.csv' FOR JOB j; RESUME JOB j")
    with pytest.raises(JobStateError):
        paused.sql("LOAD FILE 'c.csv' FOR JOB j")
    paused.sql("PAUSE JOB j")
    with pytest.raises(SqlError, match="is left out already"):
        paused.sql("SKIP FILE 'c.csv' FOR JOB j")


def test_records_of_streams_are_skipped_by_their_offsets(paused: Bench) -> None:
    paused.sql("DROP JOB j")
    with pytest.raises(SqlError, match=r"Invalid properties: \[file.skip\]"):
        paused.sql(
            "CREATE JOB k PROPERTIES('file.skip'='x') ON STREAMING DO INSERT INTO t SELECT * "
            f'FROM FILE("uri"="{paused.path}/in/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )


def test_the_choice_for_files_that_cannot_be_read_is_altered(paused: Bench) -> None:
    paused.sql('ALTER JOB j PROPERTIES("file.on_error"="skip")')
    assert '"file.on_error" = "SKIP"' in str(paused.sql("SHOW CREATE JOB j")).replace('"skip"', '"SKIP"')
    with pytest.raises(SqlError, match=r"file\.on_error"):
        paused.sql('ALTER JOB j PROPERTIES("file.on_error"="IGNORE")')


def test_the_statements_are_short_for_alter() -> None:
    written = AlterJob(name="my-job", properties={"file.skip": "a.csv"}, comment="why")
    assert parse_statement("skip file 'a.csv' for job my-job comment 'why'") == written
    assert parse_statement("EXPLAIN LOAD FILE 'a.csv' FOR JOB j") == ExplainAlter(
        alter=AlterJob(name="j", properties={"file.load": "a.csv"})
    )
    with pytest.raises(SqlError, match="expected FILE"):
        parse_statement("SKIP 'a.csv' FOR JOB j")


def test_it_takes_what_alter_takes(paused: Bench) -> None:
    password = secret("eve")
    paused.sql(f"CREATE USER eve IDENTIFIED BY '{password}'; GRANT SELECT ON shop.t TO eve")
    eve = paused.lading.session_of(paused.lading.access.check_password("eve", password))
    for statement in ("SKIP FILE 'c.csv' FOR JOB j", "LOAD FILE 'c.csv' FOR JOB j", "EXPLAIN SKIP FILE 'c' FOR JOB j"):
        with pytest.raises(DeniedError):
            eve.sql(statement)
