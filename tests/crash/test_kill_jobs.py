"""SIGKILL in a process that runs jobs on Spark, at every step; then start again and count."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lading.cli.main import app
from lading.commit.steps import STEP_NAMES
from lading.service.facade import Lading
from lading.tables.registry import NAMES, kind_of
from tests.tables.optional import skip_without

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("spark")]

FILES, ROWS = 6, 40
QUICK = ("commit.after=kill:2",)
IN_BATCHES = tuple(f"{name}=kill:2" for name in STEP_NAMES if not name.startswith(("edit", "start", "merge")))
IN_START = ("start.before=kill", "bill.after=kill", "commit.before=kill", "commit.after=kill", "follow.before=kill")
ALTER = "PAUSE JOB WHERE jobName='j'; ALTER JOB j PROPERTIES('offset'='{{\"fileName\":\"{key}\"}}')"
IN_ALTER = tuple(
    f"{name}=kill"
    for name in STEP_NAMES
    if name.partition(".")[0] in ("edit", "bill", "commit", "settle", "follow") and name != "settle.before"
)
JOB = """CREATE DATABASE shop; USE shop;
CREATE TABLE orders (id BIGINT NOT NULL, city STRING, amount DECIMAL(10,2)) USING {form};
CREATE JOB j PROPERTIES("s3.max_batch_files"="2", "session.enable_insert_strict"="false") ON STREAMING DO
INSERT INTO orders SELECT * FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")"""


ON_SPARK = {"LADING_SPARK_CONF": "spark.python.worker.reuse=true"}
"""Jobs whose rows are mapped in Arrow do without Spark, unless somebody has set more of it; see docs/vector.md."""


def lading(
    home: Path, *words: str, failpoints: str = "", settings: Mapping[str, str] = ON_SPARK
) -> subprocess.CompletedProcess[str]:
    """A command that dies is in a process of its own, with a Spark of its own; others use the fixture `spark`."""
    if not failpoints:
        said = CliRunner().invoke(app, [*words, "--home", str(home)], env=dict(settings))
        return subprocess.CompletedProcess(words, said.exit_code, said.stdout, said.stderr)
    command = [sys.executable, "-c", "from lading.cli.main import main; main()", *words, "--home", str(home)]
    environment = {**os.environ, **settings, "LADING_FAILPOINTS": failpoints}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def make_job(tmp_path: Path, form: str) -> tuple[Path, Path]:
    skip_without(kind_of(form))
    inbox, home = tmp_path / "in", tmp_path / "home"
    inbox.mkdir()
    for number in range(FILES):
        lines = [f"{number * ROWS + row if row else 'bad'},essen,1.50" for row in range(ROWS)]
        (inbox / f"{number}.csv").write_text("\n".join(["id,city,amount", *lines]) + "\n")
    assert lading(home, "init").returncode == 0
    assert lading(home, "sql", "-e", JOB.format(form=form, inbox=inbox)).returncode == 0
    return inbox, home


def count_orders(home: Path) -> tuple[int, int]:
    """Rows and different rows, as the libraries of Delta and Iceberg read the table: without Spark, and sooner."""
    with Lading(home) as opened:
        ids = opened.catalog.open_table("shop", "orders").scan()["id"].to_pylist()
    return len(ids), len(set(ids))


def check_kill(tmp_path: Path, form: str, failpoints: tuple[str, ...], settings: Mapping[str, str] = ON_SPARK) -> None:
    _, home = make_job(tmp_path, form)
    codes = [lading(home, "run", failpoints=each, settings=settings).returncode for each in failpoints]
    last = lading(home, "run", settings=settings)
    assert last.returncode == 0, last.stdout + last.stderr
    expected = FILES * (ROWS - 1)
    assert count_orders(home) == (expected, expected)
    shown = lading(home, "sql", "--format", "json", "-e", 'SELECT LoadStatistic FROM jobs("type"="insert")')
    statistic = json.loads(json.loads(shown.stdout)["LoadStatistic"])
    assert (statistic["scannedRows"], statistic["filteredRows"], statistic["fileNumber"]) == (
        FILES * ROWS,
        FILES,
        FILES,
    )
    assert lading(home, "verify", "j").returncode == 0
    assert -signal.SIGKILL in codes


@pytest.mark.parametrize("form", [pytest.param("delta", marks=pytest.mark.slow), "iceberg"])
@pytest.mark.parametrize("failpoint", QUICK)
def test_a_kill_in_the_middle_of_a_job_loses_and_doubles_nothing(tmp_path: Path, form: str, failpoint: str) -> None:
    check_kill(tmp_path, form, (failpoint,))


@pytest.mark.slow
@pytest.mark.parametrize("form", NAMES)
@pytest.mark.parametrize("failpoint", IN_BATCHES)
def test_a_second_kill_during_the_restart_of_a_job(tmp_path: Path, form: str, failpoint: str) -> None:
    check_kill(tmp_path, form, (failpoint, "start.after=kill"))


@pytest.mark.slow
@pytest.mark.parametrize("form", NAMES)
@pytest.mark.parametrize("failpoint", IN_START)
def test_a_kill_while_a_job_is_opened_and_again_while_it_is_opened_anew(
    tmp_path: Path, form: str, failpoint: str
) -> None:
    check_kill(tmp_path, form, (failpoint, failpoint))


@pytest.mark.slow
def test_ctrl_c_ends_a_run_once_after_the_commit_that_is_running(tmp_path: Path) -> None:
    inbox, home = make_job(tmp_path, "delta")
    for number in range(FILES, 60):
        (inbox / f"{number}.csv").write_text(f"id,city,amount\n{100_000 + number},essen,1.50\n")
    command = [sys.executable, "-c", "from lading.cli.main import main; main()", "run", "--home", str(home)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not list((home / "warehouse").rglob("_lading/*/1-*.json")):
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(0.05)
        assert running.returncode is None, "it ended before the first commit"
    running.send_signal(signal.SIGINT)
    said, _ = running.communicate(timeout=60)
    assert running.returncode == 128 + signal.SIGINT, said
    assert said.count("Ending after the running commit") == 1
    assert "Traceback" not in said
    loaded = count_orders(home)[0]
    assert 0 < loaded < FILES * (ROWS - 1) + 60 - FILES
    assert lading(home, "run").returncode == 0
    assert count_orders(home) == (FILES * (ROWS - 1) + 60 - FILES,) * 2


def check_alter(tmp_path: Path, form: str, failpoints: tuple[str, ...]) -> None:
    """Go back to the middle: the later half is loaded again by intent, once, whenever the ALTER was cut off."""
    inbox, home = make_job(tmp_path, form)
    assert lading(home, "run").returncode == 0
    text = ALTER.format(key=inbox / f"{FILES // 2 - 1}.csv")
    codes = [lading(home, "sql", "-e", text.partition("; ")[0]).returncode]
    codes += [lading(home, "sql", "-e", text.partition("; ")[2], failpoints=each).returncode for each in failpoints]
    assert -signal.SIGKILL in codes
    # An ALTER that was cut off may or may not have moved the position; asking again makes it sure.
    assert lading(home, "sql", "-e", f"{text.partition('; ')[2]}; RESUME JOB WHERE jobName='j'").returncode == 0
    last = lading(home, "run")
    assert last.returncode == 0, last.stdout + last.stderr
    rows = FILES * (ROWS - 1)
    assert count_orders(home) == (rows + rows // 2, rows)
    assert lading(home, "verify", "j").returncode == 0


@pytest.mark.parametrize("form", ["delta"])
def test_a_kill_in_the_middle_of_an_alter(tmp_path: Path, form: str) -> None:
    check_alter(tmp_path, form, ("commit.after=kill",))


def test_an_alter_that_dies_after_its_commit_is_in_the_audit_after_the_next_start(tmp_path: Path) -> None:
    inbox, home = make_job(tmp_path, "delta")
    pause, alter = ALTER.format(key=inbox / "2.csv").split("; ")
    assert lading(home, "sql", "-e", pause).returncode == 0
    assert lading(home, "sql", "-e", alter, failpoints="edit.after=kill").returncode == -signal.SIGKILL
    shown = lading(home, "sql", "--format", "json", "-e", "SHOW LOAD AUDIT FOR j")
    entries = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [entry["Action"] for entry in entries] == ["ALTER", "PAUSE", "CREATE"], shown.stderr
    taken_back = lading(home, "sql", "-e", "UNDO ALTER JOB j")
    assert taken_back.returncode == 0, taken_back.stderr
    with Lading(home) as opened:
        bills = opened.bills(opened.job("j"), 9)
        assert [bill.kind.value for bill in bills if bill.epoch] == ["edit", "takeover", "edit"]
        assert bills[0].positions == bills[-1].positions


@pytest.mark.slow
@pytest.mark.parametrize("form", NAMES)
@pytest.mark.parametrize("failpoint", IN_ALTER)
def test_a_kill_at_every_step_of_an_alter_and_again_in_the_next(tmp_path: Path, form: str, failpoint: str) -> None:
    check_alter(tmp_path, form, (failpoint, failpoint))
