"""A service with a backlog is killed again and again, on Spark: each life commits or halves, and the backlog ends.

While one life works, the next one starts its Spark, so that kills follow each other within seconds. What is read is
counted by the kernel: each time that somebody opens a file of the inbox.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import polars as pl
import pytest

from lading.jobs.pace import CALM_COMMITS
from lading.jobs.record import JobRecord
from lading.service.facade import Lading
from tests.soak.processes import processes_below, wait_until_gone
from tests.support.file_reads import FileReads

pytestmark = [pytest.mark.java, pytest.mark.slow]

KILLS = int(os.environ.get("LADING_TEST_KILLS", "50"))
FILES, MORE, ROWS = 400, 40, 200
"""Files at the beginning, those that come during each life, and rows in each."""
BATCH, PATIENCE_S = 20, 300.0
AFTER_COMMIT = 0.75
"""So many lives are killed in the batch behind their first commit, the others in their first batch: when so many files
of it were opened as a seed chooses, or none of them."""
LIFE = """
import os, sys
from pathlib import Path
from lading.pipeline.java import find_java
from lading.pipeline.session import open_session
from lading.service.facade import Lading
spare = Path(sys.argv[2])
# Java that lives for seconds is not worth being compiled well: it starts with two thirds of the work.
quick = {"spark.master": "local[2]", "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
spark = open_session(quick, find_java(os.environ, spare), spare)
print("ready", flush=True)
sys.stdin.readline()
with Lading(sys.argv[1], session=spark) as lading:
    lading.run()
os._exit(0)
"""
STATEMENTS = """CREATE DATABASE shop; USE shop;
CREATE TABLE orders (id BIGINT NOT NULL, city STRING) USING delta;
CREATE JOB j PROPERTIES("s3.max_batch_files"="20") ON STREAMING DO
INSERT INTO orders SELECT * FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", "column_separator"=",")"""


@dataclass(slots=True)
class Tally:
    """What the kills came to."""

    kills: int = 0
    fruitless: int = 0
    scales: list[float] = field(default_factory=list)
    read: Counter[str] = field(default_factory=Counter)
    """How often each file was opened."""
    again: list[int] = field(default_factory=list)
    """Of each life: files that an earlier one had opened."""


def record_of(home: Path) -> JobRecord:
    with Lading(home) as opened:
        return opened.any_job("j")


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


class Lives:
    """Services, of which the next one has a Spark that starts while the one before it works."""

    def __init__(self, home: Path, reads: FileReads) -> None:
        self._home, self._reads, self._number = home, reads, 0
        self._log = home.with_name("lives.log")
        self.opened: Counter[str] = Counter()
        """By the life that was last."""
        self._next = self._start()

    def live(self, rng: Random | None) -> bool:
        """One that is killed when it has come so far. False: it ended by itself before. None: nobody kills it."""
        process, before, self.opened = self._next, progress_of(self._home), Counter()
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        print(file=process.stdin, flush=True)
        self._next = self._start()
        has_come = self._reach(process, before, rng)
        if has_come:
            self._kill(process)
        process.communicate()
        assert has_come or process.returncode == 0, self._log.read_text()[-3000:]
        return has_come

    def _reach(self, process: subprocess.Popen[str], before: Progress, rng: Random | None) -> bool:
        """Wait until it has come so far, or has ended."""
        is_late = rng is not None and rng.random() < AFTER_COMMIT
        goal = rng.randrange(BATCH) if rng is not None else 0
        files, until = 0, time.monotonic() + PATIENCE_S
        while process.poll() is None:
            assert time.monotonic() < until, "it came to nothing"
            now = progress_of(self._home)
            opened = self._reads.take()
            self.opened += opened
            has_begun = now.commits > before.commits if is_late else now.begun > before.begun
            files = files + len(opened) if has_begun else 0
            if rng is not None and has_begun and files >= goal:
                return True
            time.sleep(0.005)
        return False

    def close(self) -> None:
        self._kill(self._next)

    def _start(self) -> subprocess.Popen[str]:
        self._number += 1
        spare = self._home.with_name(f"spare-{self._number}")
        command = [sys.executable, "-c", LIFE, str(self._home), str(spare)]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)

    def _kill(self, process: subprocess.Popen[str]) -> None:
        """SIGKILL; and nothing of its Spark reads on while the next one is looked at."""
        below = processes_below(process.pid)
        process.kill()
        process.communicate()
        assert not wait_until_gone(below, PATIENCE_S)


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
    files, began = FILES, time.monotonic()
    with closing(FileReads(inbox)) as reads, closing(Lives(home, reads)) as lives:
        before = record_of(home)
        while tally.kills < KILLS:
            put(inbox, range(files, files + MORE))
            files += MORE
            reads.take()  # Those of this process.
            assert lives.live(rng), "there was no backlog left"
            after = record_of(home)
            count(tally, before, after, lives.opened + reads.take())
            with capsys.disabled():
                print(
                    f"\nkill {tally.kills}: {commits(after)} commits, {tally.again[-1]} files again", end="", flush=True
                )
            before = after
        assert not lives.live(None), "nobody kills it now"
        count_reads(tally, lives.opened + reads.take())
    tell(tally, home, files, time.monotonic() - began, capsys)


def tell(tally: Tally, home: Path, files: int, took_s: float, capsys: pytest.CaptureFixture[str]) -> None:
    """The backlog has ended, and each row is there once."""
    ids = sorted(pl.read_delta(str(home / "warehouse" / "shop" / "orders"))["id"].to_list())
    with Lading(home) as opened:
        assert opened.verify("j").is_clean
        total = opened.any_job("j").totals
    assert ids == list(range(files * ROWS))
    assert total is not None
    assert total.rows.total == files * ROWS
    assert tally.read.keys() == {f"{number:05d}.csv" for number in range(1, files)}
    rows = (tally.read.total() - len(tally.read)) * ROWS
    with capsys.disabled():
        print(f"\n{tally.kills} kills in {took_s / 60:.1f} minutes, {tally.fruitless} lives without a commit, ", end="")
        print(f"{total.commits} commits, {len(ids)} rows, each once; {rows} rows read again, ", end="")
        print(f"at most {max(tally.again) * ROWS} after a kill; smallest batch {min(tally.scales):g}")


def count(tally: Tally, before: JobRecord, after: JobRecord, opened: Counter[str]) -> None:
    """What one life came to, and what it made of the batch that the one before it had died with."""
    tally.kills += 1
    tally.scales.append(after.batch_scale)
    is_lost = before.task is not None and after.counts.cancelled > before.counts.cancelled
    if is_lost and not before.pace.has_committed:
        tally.fruitless += 1
        is_least = before.pace.least is not None
        has_grown = is_least or commits(after) - commits(before) >= CALM_COMMITS
        assert has_grown or after.batch_scale <= before.batch_scale / 2, "it committed nothing and was not halved"
    count_reads(tally, opened)


def count_reads(tally: Tally, opened: Counter[str]) -> None:
    """A file is opened once in a life, and those of one batch at most had been opened before.

    The first file is left out: each life opens it, once or twice, to see which columns there are.
    """
    opened.pop(f"{0:05d}.csv", None)
    assert set(opened.values()) <= {1}, opened
    tally.again.append(sum(name in tally.read for name in opened))
    assert tally.again[-1] <= BATCH, "more was read again than one batch"
    tally.read += opened


def commits(record: JobRecord) -> int:
    return record.totals.commits if record.totals is not None else 0
