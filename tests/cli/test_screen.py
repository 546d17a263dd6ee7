"""What `lading run` shows on a terminal: a line for each job that stays where it is, and nothing written into it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from lading.jobs.batches import NOTHING_NEW
from lading.service.runtime.address_file import ServiceAddress, remove_address, write_address
from lading.testing.marked import secret
from tests.cli.test_run_beside_service import answering, job
from tests.console.local import LocalLading
from tests.support.screen import Screen, on_terminal

COMMAND = [sys.executable, "-c", "from lading.cli.main import main; main()"]
NOISY = """rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = noise %c{1}: %m%n
"""
WHOLE = re.compile(r"\S?\s*orders: .*\d+:\d\d:\d\d")
"""The line of a job: what turns or nothing, what is told, and the time."""
LOGGED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]+ ")
"""How a line of the log begins, with nothing before it."""


def check_line(screen: Screen) -> None:
    """At any moment a job has one line at most, with nothing of others before it or behind."""
    lines = screen.with_words("orders: ")
    assert len(lines) < 2, screen.lines
    assert all("noise" not in line for line in lines), lines


def test_a_screen_is_what_a_terminal_shows() -> None:
    screen = Screen(10)
    screen.write("one\r\ntwo\r\x1b[2K\x1b[1A\x1b[2Kabc\x1b[31")
    screen.write("mdef\x1b[0m\r\n0123456789x")
    assert screen.lines == ["abcdef", "0123456789", "x"]


def test_progress_beside_a_service_is_told_in_place(tmp_path: Path) -> None:
    orders, stock = job("orders"), job("stock")
    (tmp_path / "service.id").touch()
    with answering([orders, stock]) as address:
        write_address(tmp_path, ServiceAddress(pid=os.getpid(), http=address, mysql_port=1, token=secret("token")))
        with on_terminal([*COMMAND, "run", "--home", str(tmp_path)]) as terminal:
            terminal.on_change = check_line
            terminal.until(lambda screen: bool(screen.with_words("orders: RUNNING; 7 rows loaded")))
            orders["totals"] = {"rows": {"loaded": 1234, "error": 5}, "source_files": 3}
            orders["lag"] = {"behind": 2, "unit": "files"}
            told = "orders: RUNNING; 3 files, 1,234 rows loaded, 5 bad, 0 rows/s, 2 files behind"
            terminal.until(lambda screen: bool(screen.with_words(told)))
            orders["message"] = stock["message"] = NOTHING_NEW
            assert terminal.end() == 0
            shown = [line.strip() for line in terminal.screen.lines if line.strip()]
        remove_address(tmp_path)
    assert shown[0] == "A service runs the jobs of this home; waiting until they have caught up."
    assert len(shown) == 3, shown
    assert WHOLE.fullmatch(shown[1]), shown
    assert shown[2].startswith("stock: RUNNING; 7 rows loaded"), shown


def make_home(folder: Path, select: str) -> Path:
    """A job with a file to load."""
    (folder / "in").mkdir()
    (folder / "in" / "a.csv").write_text("id,city\n1,essen\n2,lagos\n")
    with LocalLading(folder / "home") as lading:
        lading.sql(
            "CREATE DATABASE shop; USE shop; CREATE TABLE t (id BIGINT, city STRING) USING delta; "
            f'CREATE JOB orders PROPERTIES ("file.settle_seconds"="0") ON STREAMING DO INSERT INTO t SELECT {select} '
            f'FROM FILE("uri"="{folder}/in/*.csv", "format"="csv_with_names", "column_separator"=",")'
        )
    return folder / "home"


def test_a_run_without_a_service_leaves_one_line_for_its_job(tmp_path: Path) -> None:
    home = make_home(tmp_path, "id, city")
    with on_terminal([*COMMAND, "run", "--home", str(home)]) as terminal:
        terminal.on_change = check_line
        assert terminal.end() == 0, terminal.screen.lines
        shown = [line.strip() for line in terminal.screen.lines if line.strip()]
    assert len(shown) == 1, shown
    assert WHOLE.fullmatch(shown[0]), shown
    assert "orders: RUNNING; 1 files, 2 rows loaded, 0 bad" in shown[0]


@pytest.mark.slow
@pytest.mark.java
def test_lines_of_spark_stand_above_the_display_and_do_not_break_it(tmp_path: Path) -> None:
    """Java writes them at any time, while the display moves."""
    home = make_home(tmp_path, "id, soundex(city)")
    (home / "spark").mkdir(exist_ok=True)
    (home / "spark" / "log4j2.properties").write_text(NOISY)
    with on_terminal([*COMMAND, "run", "--home", str(home)]) as terminal:
        terminal.on_change = check_line
        assert terminal.end(120) == 0, terminal.screen.lines
        shown = [line.rstrip() for line in terminal.screen.lines if line.strip()]
    said = [line for line in shown if "WARN" in line or "noise" in line]
    assert any("noise" in line for line in said), shown
    assert all(LOGGED.match(line) for line in said), said
    assert WHOLE.fullmatch(shown[-1].strip()), shown
    assert "orders: RUNNING; 1 files, 2 rows loaded" in shown[-1]
