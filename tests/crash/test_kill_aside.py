"""SIGKILL while a file is put aside: it is so once, for good or not yet, and no row of others is lost or doubled."""

from __future__ import annotations

import gzip
import json
import signal
from pathlib import Path

import polars as pl
import pytest

from tests.crash.test_kill_jobs import lading

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("spark")]

ROWS = 20
JOB = """CREATE DATABASE shop; USE shop;
CREATE TABLE orders (id BIGINT NOT NULL, city STRING) USING delta;
CREATE JOB j PROPERTIES("file.on_error"="SKIP") ON STREAMING DO
INSERT INTO orders SELECT * FROM FILE("uri"="{inbox}/*", "format"="csv_with_names", "column_separator"=",")"""


def make_job(tmp_path: Path) -> Path:
    inbox, home = tmp_path / "in", tmp_path / "home"
    inbox.mkdir()
    for number in range(3):
        lines = [f"{number * ROWS + row},essen" for row in range(ROWS)]
        content = "\n".join(["id,city", *lines, ""]).encode()
        (inbox / f"{number}.csv{'.gz' * (number == 1)}").write_bytes(
            gzip.compress(content)[:-9] if number == 1 else content
        )
    assert lading(home, "init").returncode == 0
    assert lading(home, "sql", "-e", JOB.format(inbox=inbox)).returncode == 0
    return home


def ids(home: Path) -> list[int]:
    """As Polars reads the table."""
    (log,) = (home / "warehouse").rglob("_delta_log")
    return sorted(pl.read_delta(str(log.parent))["id"].to_list())


# The commit of the file is the second or the third of a life, after that of a takeover.
@pytest.mark.parametrize(
    "failpoint",
    [
        "commit.after=kill:3",
        *(
            pytest.param(f"{step}=kill:{hit}", marks=pytest.mark.slow)
            for step in ("stage.before", "stage.after", "bill.after", "commit.before", "commit.after", "follow.before")
            for hit in (2, 3)
            if (step, hit) != ("commit.after", 3)
        ),
    ],
)
def test_a_kill_while_a_file_is_put_aside(tmp_path: Path, failpoint: str) -> None:
    home = make_job(tmp_path)
    assert lading(home, "run", failpoints=failpoint).returncode == -signal.SIGKILL
    last = lading(home, "run")
    assert last.returncode == 4, last.stdout + last.stderr
    assert "1 file put aside" in last.stdout + last.stderr
    expected = [*range(ROWS), *range(2 * ROWS, 3 * ROWS)]
    assert ids(home) == expected
    shown = lading(home, "sql", "--format", "json", "-e", "SHOW LOAD ERRORS FOR j")
    (error,) = [json.loads(line) for line in shown.stdout.splitlines() if line.strip()]
    assert "1.csv.gz cannot be read" in error["Reason"]
    assert lading(home, "verify", "j").returncode == 0
