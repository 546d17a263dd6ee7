"""What a light command imports: neither Spark nor Arrow nor a face, so that it answers in a blink."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lading.cli.main import COMMANDS, command_of
from lading.cli.shell import TOPICS
from lading.sql.syntax.parse import _FORMS
from tests.cli.test_apply import serving

HEAVY = frozenset(
    [
        "pyspark",
        "py4j",
        "pyarrow",
        "numpy",
        "pandas",
        "sqlglot",
        "deltalake",
        "pyiceberg",
        "confluent_kafka",
        "boto3",
        "botocore",
        "nicegui",
        "fastapi",
        "uvicorn",
        "pydantic",
        "argon2",
        "prompt_toolkit",
        "prometheus_client",
    ]
)
ASK = """
import sys
from lading.cli.main import main
try:
    main()
finally:
    print(*{name.partition(".")[0] for name in sys.modules})
"""

ASK_ALL = ASK.replace('{name.partition(".")[0] for name in sys.modules}', "sys.modules")
OF_RUNNING_JOBS = {"lading.jobs.events", "lading.service.runtime.stagers", "lading.service.runtime.runner"}
JOB = """CREATE DATABASE shop; CREATE TABLE shop.t (id BIGINT, name STRING) USING delta;
CREATE JOB j PROPERTIES ("file.settle_seconds" = "0") ON STREAMING DO INSERT INTO shop.t
SELECT id + 1 AS id, upper(name) AS name
FROM FILE("uri" = "{folder}/*.csv", "format" = "csv_with_names", "column_separator" = ",")"""


def said_by(program: str, *words: str) -> list[str]:
    said = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()[-1].split()


def imported_by(*words: str) -> set[str]:
    return set(said_by(ASK, *words))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("light") / "home"
    imported_by("init", "--home", str(home))
    return home


@pytest.mark.parametrize(
    "statement", ["SHOW DATABASES", "USE default; SHOW TABLES", "CREATE DATABASE a; DROP DATABASE a"]
)
def test_a_statement_about_names_imports_nothing_heavy(home: Path, statement: str) -> None:
    found = imported_by("sql", "--home", str(home), "-e", statement)
    assert "sqlalchemy" in found
    assert found & HEAVY == set()


def test_a_statement_about_names_imports_nothing_of_jobs_that_run(home: Path) -> None:
    found = said_by(ASK_ALL, "sql", "--home", str(home), "-e", "SHOW DATABASES")
    assert "lading.service.facade" in found
    assert set(found) & OF_RUNNING_JOBS == set()


def test_a_run_that_needs_no_spark_does_not_import_it(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("id,name\n1,x\n")
    imported_by("init", "--home", str(home))
    imported_by("sql", "--home", str(home), "-e", JOB.format(folder=folder))
    assert imported_by("run", "--home", str(home)) & {"pyspark", "pydantic", "pandas"} == set()
    assert len(list((home / "warehouse").rglob("*.parquet"))) == 1


def test_a_list_of_jobs_imports_nothing_heavy(home: Path) -> None:
    found = imported_by("jobs", "--home", str(home))
    assert "sqlalchemy" in found
    assert found & HEAVY == set()


@pytest.mark.parametrize("words", [["sql", "-e", "SHOW DATABASES"], ["jobs"]])
def test_what_a_running_service_answers_needs_not_even_the_store(home: Path, words: list[str]) -> None:
    with serving(home):
        found = imported_by(*words, "--home", str(home))
    assert "rich" in found
    assert found & (HEAVY | {"sqlalchemy", "cryptography", "asyncio"}) == set()


def test_the_version_and_help_need_not_even_the_store() -> None:
    for word in ("--version", "--help"):
        assert imported_by(word) & (HEAVY | {"sqlalchemy"}) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_of_each_command_what_the_command_says(name: str) -> None:
    said = str(command_of(name).help).split("\n\n")[0].replace("\n", " ")
    assert said == COMMANDS[name][1]


def test_help_of_the_shell_lists_every_statement() -> None:
    assert sorted(form for topic in TOPICS.values() for form in topic) == sorted(words for words, _ in _FORMS)
