"""A service with a backlog is killed again and again, on Spark: each life commits or halves, and the backlog ends."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from lading.jobs.pace import CALM_COMMITS
from lading.jobs.record import JobRecord
from lading.service.facade import Lading

pytestmark = [pytest.mark.java, pytest.mark.slow]

KILLS = int(os.environ.get("LADING_TEST_KILLS", "50"))
FILES, ROWS = 600, 2_000
MOMENTS_S = (0.5, 5.0, 8.0, 12.0)
"""After a life has begun its first batch, which waits for Spark to start."""
STATEMENTS = """CREATE DATABASE shop; USE shop;
CREATE TABLE orders (id BIGINT NOT NULL, city STRING) USING delta;
CREATE JOB j PROPERTIES("s3.max_batch_files"="200") ON STREAMING DO
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


def live(home: Path, begun: int, after_s: float) -> bool:
    """A service that is killed so long after it began a batch. False: it ended by itself before."""
    command = [sys.executable, "-c", "from lading.cli.main import main; main()", "run", "--home", str(home)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < until and batches_begun(home) <= begun:
            time.sleep(0.05)
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            return True
    assert process.returncode == 0
    return False


def batches_begun(home: Path) -> int:
    """Read beside the service that runs, as anybody may who has the file."""
    with sqlite3.connect(f"file:{home}/lading.db?mode=ro", uri=True, timeout=10) as store:
        bodies = [json.loads(row[0])["body"] for row in store.execute("SELECT body FROM lading_jobs")]
    store.close()
    return max((body["counts"]["begun"] for body in bodies), default=0)


def test_fifty_kills_in_a_row_do_not_keep_a_backlog_from_ending(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inbox, home, rng, tally = tmp_path / "in", tmp_path / "home", Random(7), Tally()
    inbox.mkdir()
    for number in range(FILES):
        lines = "".join(f"{number * ROWS + row},essen\n" for row in range(ROWS))
        (inbox / f"{number:05d}.csv").write_text(f"id,city\n{lines}")
    with Lading(home) as made:
        made.sql(STATEMENTS.format(inbox=inbox))
    before = record_of(home)
    while tally.kills < KILLS and live(home, before.counts.begun, rng.choice(MOMENTS_S)):
        after = record_of(home)
        count(tally, before, after)
        before = after
    assert not live(home, 1 << 30, 300), "nobody kills it now"
    with Lading(home) as opened:
        ids = opened.catalog.open_table("shop", "orders").scan()["id"].to_pylist()
        assert opened.verify("j").is_clean
        total = opened.any_job("j").totals
    assert sorted(ids) == list(range(FILES * ROWS))
    assert total is not None
    assert total.rows.total == FILES * ROWS
    with capsys.disabled():
        print(f"\n{tally.kills} kills, {tally.fruitless} lives without a commit, {tally.again} files read again")
        print(f"scales {tally.scales}; {total.commits} commits")


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
    assert files <= max(1, 200 * after.batch_scale), "more was running than one batch"
    tally.again += files


def commits(record: JobRecord) -> int:
    return record.totals.commits if record.totals is not None else 0
