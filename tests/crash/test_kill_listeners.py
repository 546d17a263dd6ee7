"""SIGKILL between the commit and those who are to be told of it, in a process that runs a job on Spark."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from lading.commit.steps import STEP_NAMES
from lading.tables.registry import NAMES, kind_of
from tests.crash.test_kill_jobs import count_orders, lading
from tests.support.hook_server import hook_server
from tests.tables.optional import skip_without

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("spark")]

FILES = 3
IN_BATCHES = tuple(name for name in STEP_NAMES if not name.startswith(("edit", "start", "merge", "settle.before")))
JOB = """CREATE DATABASE shop; USE shop;
CREATE TABLE orders (id BIGINT, city STRING) USING {form} PARTITIONED BY (city);
CREATE JOB j PROPERTIES("s3.max_batch_files"="1", "file.settle_seconds"="0", "partition.idle_time_to_done"="0 seconds",
"listener.hook.type"="http", "listener.hook.url"="{url}", "listener.mark.type"="success_file") ON STREAMING DO
INSERT INTO orders SELECT * FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")"""


def check_kill(tmp_path: Path, form: str, *failpoints: str, files: int = FILES) -> None:
    """Every partition is told of, with the rows that its commit brought; twice only when the kill left it open."""
    skip_without(kind_of(form))
    inbox, home = tmp_path / "in", tmp_path / "home"
    inbox.mkdir()
    for number in range(files):
        (inbox / f"{number}.csv").write_text(f"id,city\n{2 * number},c{number}\n{2 * number + 1},c{number}\n")
    with hook_server() as hooks:
        assert lading(home, "init").returncode == 0
        made = lading(home, "sql", "-e", JOB.format(form=form, inbox=inbox, url=hooks.url))
        assert made.returncode == 0, made.stderr
        for failpoint in failpoints:
            assert lading(home, "run", failpoints=failpoint).returncode == -signal.SIGKILL
        last = lading(home, "run")
        assert last.returncode == 0, last.stdout + last.stderr
        told = Counter(hooks.keys)
        assert {(body["partition"], body["rows"]) for body in hooks.bodies} == {
            (f"city=c{number}", 2) for number in range(files)
        }
        assert len(told) == files
        assert sum(told.values()) <= files + len(failpoints)
        assert lading(home, "run").returncode == 0
        assert Counter(hooks.keys) == told  # The bills know that all of it was told.
    print(f"Told(kills={len(failpoints)}, partitions={files}, again={sum(told.values()) - files})")
    assert len(list((home / "warehouse").rglob("_SUCCESS"))) == files
    assert count_orders(home) == (2 * files, 2 * files)


def test_a_kill_between_commit_and_listener(tmp_path: Path) -> None:
    check_kill(tmp_path, "delta", "follow.before=kill:2", files=1)  # Only one of its processes needs Spark.


@pytest.mark.slow
@pytest.mark.parametrize("form", NAMES)
@pytest.mark.parametrize("step", IN_BATCHES)
def test_a_kill_at_every_step_and_again_in_the_restart(tmp_path: Path, form: str, step: str) -> None:
    check_kill(tmp_path, form, f"{step}=kill:2", "follow.before=kill")
