"""Commands as they are typed: a version, a home that is not there, jobs with and without a service."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lading import __version__
from lading.cli.main import app
from lading.cli.remote import _told
from lading.errors import JobNotFoundError, LadingError, RequestError, SqlError
from lading.http.errors import respond
from lading.service.facade import Lading

LADING = [sys.executable, "-c", "from lading.cli.main import main; main()"]


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LADING, *words], capture_output=True, text=True, check=False)


def test_the_version() -> None:
    assert typed("--version").stdout == f"lading {__version__}\n"


def test_completion_knows_the_commands() -> None:
    variables = {"_LADING_COMPLETE": "complete_bash", "COMP_WORDS": "lading st", "COMP_CWORD": "1"}
    code = "from lading.cli.main import app; app(prog_name='lading')"
    said = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert said.stdout.split() == ["status"]


@pytest.mark.parametrize(
    "words", [["sql", "-e", "SHOW DATABASES"], ["run"], ["verify", "j"], ["clean"], ["jobs"], ["pause", "j"]]
)
def test_a_home_that_is_not_there_is_said_and_not_made(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for home, what in ((tmp_path / "typo", "There is no home at"), (tmp_path / "mine", "is not a home")):
        said = CliRunner().invoke(app, [*words, "--home", str(home)])
        assert isinstance(said.exception, LadingError)
        assert (said.exception.code, said.exception.exit_code) == ("NoHome", 2)
        assert what in said.exception.what
        assert f"lading init --home {home}" in said.exception.todo
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert list((tmp_path / "mine").iterdir()) == []


def test_init_makes_a_home_once_and_not_among_other_files(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for told in ("Made the home", "is a home already"):
        said = CliRunner().invoke(app, ["init", "--home", str(home)])
        assert (said.exit_code, told in said.output) == (0, True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    said = CliRunner().invoke(app, ["init", "--home", str(tmp_path / "full")])
    assert "has other files in it" in str(said.exception)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["letter.txt"]


def test_jobs_are_listed_shown_paused_and_resumed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Lading(home) as lading:
        lading.sql(
            "CREATE DATABASE shop; CREATE TABLE shop.t (id BIGINT) USING delta; "
            "CREATE JOB load_t ON STREAMING DO INSERT INTO shop.t SELECT id "
            f"FROM FILE('uri'='{tmp_path}/in/*.csv', 'format'='csv_with_names')"
        )

    def said(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, [*words, "--home", str(home)])
        return done.exit_code, done.output + str(done.exception or "")

    assert said("jobs", "--format", "csv") == (
        0,
        'Job,State,Health,Source,Target,Rows,Bad,Behind,LastCommit,Message\nload_t,PENDING,healthy,FILE,shop.t,0,0,,,""\n',
    )
    assert said("pause", "load_t") == (0, "load_t: PAUSED\n")
    status, told = said("status", "load_t")
    assert (status, " State: PAUSED\n" in told, "pauses job" in told) == (3, True, True)
    assert said("logs", "load_t") == (0, "")
    assert said("resume", "load_t") == (0, "load_t: PENDING\n")
    assert said("status", "load_t")[0] == 0
    assert "job not exist: typo" in said("status", "typo")[1]


@pytest.mark.parametrize("text", ["SHWO DATABASES", "USE default;\nDROP TABL x", "SHOW", "CREATE TABLE t (a WRONG)"])
def test_an_error_through_a_service_is_the_error_without_it(text: str, tmp_path: Path) -> None:
    with Lading(tmp_path / "home") as lading, pytest.raises(SqlError) as raised:
        lading.sql(text)
    answered = _told(bytes(respond(raised.value).body))
    assert isinstance(answered, SqlError)
    assert (str(answered), answered.code, answered.exit_code, answered.line, answered.column) == (
        str(raised.value),
        raised.value.code,
        2,
        raised.value.line,
        raised.value.column,
    )


def test_other_errors_keep_their_class_and_what_is_no_error_is_said() -> None:
    missing = JobNotFoundError("job not exist: x", left="Nothing was changed.", todo="Look.")
    answered = _told(bytes(respond(missing).body))
    assert (type(answered), str(answered)) == (JobNotFoundError, str(missing))
    assert type(_told(b"<html>")) is RequestError
