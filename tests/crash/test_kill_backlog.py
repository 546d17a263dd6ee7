"""A service with a backlog is killed again and again, on Spark: each life commits or halves, and the backlog ends."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from lading.jobs.pace import CALM_COMMITS
from lading.jobs.record import JobRecord
from lading.service.facade import Lading

pytestmark = [pytest.mark.java, pytest.mark.slow]

KILLS = int(os.environ.get("LADING_TEST_KILLS", "50"))
FILES, MORE, ROWS = 400, 40, 200
"""Files at the beginning, those that come during each life, and rows in each."""
BATCH, PATIENCE_S = 20, 300.0
AFTER_COMMIT_S = (0.0, 0.3, 0.8)
"""Most lives are killed so long after their first commit, in the middle of a batch."""
BEFORE_COMMIT_S = (0.5, 4.0)
"""Some so long after they began their first batch, which waits for Spark to start: most of these commit nothing."""
STATEMENTS = """CREATE DATABASE shop; USE shop;
CREATE TABLE orders (id BIGINT NOT NULL, city STRING) USING delta;
CREATE JOB j PROPERTIES("s3.max_batch_files"="20") ON STREAMING DO
INSERT INTO orders SELECT * FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")"""


@dataclass(slots=True)
class Tally:
    """What the kills came to."""

    kills: int = 0
    fruitless: int = 0
    again: int = 0
    """Files of the batches that were running when the service was killed."""
    scales: list[float] = field(default_factory=list)


def record_of(home: Path) -> JobRecord:
    with Lading(home) as opened:
        return opened.any_job("j")


def files_of(record: JobRecord) -> int:
    """How many files the batch has that is open: their names are numbers."""
    told = json.loads(record.task.running_offset) if record.task is not None and record.task.running_offset else {}
    names = [Path(name).stem for name in told.values()]
    numbers = [int(name) for name in names if name.isdigit()]
    return max(numbers) - min(numbers) + 1 if numbers else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a store says of a service that runs, as anybody may read it who has the file."""

    begun: int
    commits: int


def progress_of(home: Path) -> Progress:
    with closing(sqlite3.connect(f"file:{home}/lading.db?mode=ro", uri=True, timeout=10)) as store:
        bodies = [json.loads(row[0])["body"] for row in store.execute("SELECT body FROM lading_jobs")]
    body = bodies[0]
    return Progress(begun=body["counts"]["begun"], commits=(body["totals"] or {"commits": 0})["commits"])


def live(home: Path, rng: Random | None) -> bool:
    """A service that is killed once it has come so far. False: it ended by itself before. None: nobody kills it."""
    command = [sys.executable, "-c", "from lading.cli.main import main; main()", "run", "--home", str(home)]
    before, is_late = progress_of(home), rng is not None and rng.random() < 0.75
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + PATIENCE_S
        while process.poll() is None and time.monotonic() < until:
            now = progress_of(home)
            if rng is not None and (now.commits > before.commits if is_late else now.begun > before.begun):
                break
            time.sleep(0.05)
        assert time.monotonic() < until, "it came to nothing"
        try:
            process.wait(0 if rng is None else rng.choice(AFTER_COMMIT_S if is_late else BEFORE_COMMIT_S))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            return True
    assert process.returncode == 0
    return False


def put(inbox: Path, numbers: range) -> None:
    for number in numbers:
        lines = "".join(f"{number * ROWS + row},essen\n" for row in range(ROWS))
        made = inbox / f"{number:05d}.tmp"
        made.write_text(f"id,city\n{lines}")
        made.rename(made.with_suffix(".csv"))


def test_fifty_kills_in_a_row_do_not_keep_a_backlog_from_ending(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inbox, home, rng, tally = tmp_path / "in", tmp_path / "home", Random(7), Tally()
    inbox.mkdir()
    put(inbox, range(FILES))
    with Lading(home) as made:
        made.sql(STATEMENTS.format(inbox=inbox))
    before, files = record_of(home), FILES
    while tally.kills < KILLS:
        put(inbox, range(files, files + MORE))
        files += MORE
        assert live(home, rng), "there was no backlog left"
        after = record_of(home)
        count(tally, before, after)
        with capsys.disabled():
            print(f"\nkill {tally.kills}: {commits(after)} commits, {tally.again} files read again", end="", flush=True)
        before = after
    assert not live(home, None), "nobody kills it now"
    with Lading(home) as opened:
        ids = opened.catalog.open_table("shop", "orders").scan()["id"].to_pylist()
        assert opened.verify("j").is_clean
        total = opened.any_job("j").totals
    assert sorted(ids) == list(range(files * ROWS))
    assert total is not None
    assert total.rows.total == files * ROWS
    with capsys.disabled():
        print(
            f"\n{tally.kills} kills, {tally.fruitless} lives without a commit, {tally.again} files read again", end=""
        )
        print(f" of {files}; {total.commits} commits, {len(ids)} rows, each once; smallest batch {min(tally.scales):g}")


def count(tally: Tally, before: JobRecord, after: JobRecord) -> None:
    """What one life came to, and what it made of the batch that the one before it had died with."""
    tally.kills += 1
    tally.scales.append(after.batch_scale)
    is_lost = before.task is not None and after.counts.cancelled > before.counts.cancelled
    if is_lost and not before.pace.has_committed:
        tally.fruitless += 1
        is_least = before.pace.least is not None
        has_grown = is_least or commits(after) - commits(before) >= CALM_COMMITS
        assert has_grown or after.batch_scale <= before.batch_scale / 2, "it committed nothing and was not halved"
    files = files_of(after)
    assert files <= max(1, BATCH * after.batch_scale), "more was running than one batch"
    tally.again += files


def commits(record: JobRecord) -> int:
    return record.totals.commits if record.totals is not None else 0
