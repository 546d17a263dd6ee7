"""Section "recovery": from SIGKILL to the next commit, by a new process and by another service; what is read again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq
from rich.table import Table
from tests.store.postgres import NoPostgresError, serve_postgres
from tests.support.takeover import NAMES, Pair, Takeover

from bench.files import CONSOLE, SCALE, write_files
from lading.service.facade import Lading

KILLS = int(os.environ.get("LADING_BENCH_KILLS", "5"))
FILES, ROWS, BATCH_FILES = 400, 20_000, 4
RUN = "import sys; from lading import connect\nwith connect(sys.argv[1]) as lading: lading.run()"
PATIENCE_S = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """One kill."""

    seconds: float
    """From the signal to the first commit with rows of the process that was started then."""
    rows_again: int
    """Rows in data files that were whole and in no commit."""


def run() -> None:
    """Measure and print."""
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
    try:
        _show_recoveries(_recoveries(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    run_takeover()


def run_takeover() -> None:
    """Two services on Spark share a store in PostgreSQL; the one that has a job is killed, again and again."""
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
    try:
        with serve_postgres() as postgres, Pair(folder, postgres.fresh_url()) as pair:
            _show_takeovers([_take_over(pair) for _ in range(KILLS)])
    except NoPostgresError as error:
        CONSOLE.print(f"not measured, a second service: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _take_over(pair: Pair) -> Takeover:
    for job in NAMES:
        pair.send(job, files=60, rows=max(1, int(5_000 * SCALE)))
    pair.wait_until_warm()
    # What was sent first may be loaded by now: both started Spark meanwhile.
    pair.send(NAMES[0], files=60, rows=max(1, int(5_000 * SCALE)))
    name, taken = pair.kill_holder(NAMES[0])
    CONSOLE.print(str(taken))
    pair.start(name)
    return taken


def _show_takeovers(taken: list[Takeover]) -> None:
    shown = Table(
        "kills of a service", "the other has its job, each s", "and has committed, each s", "median s", "worst s"
    )
    seconds = [one.committed_s for one in taken]
    leased = ", ".join(f"{one.leased_s:.1f}" for one in taken)
    each = ", ".join(f"{one:.1f}" for one in seconds)
    shown.add_row(str(len(taken)), leased, each, f"{median(seconds):.1f}", f"{max(seconds):.1f}")
    CONSOLE.print(shown)


def _recoveries(folder: Path) -> list[Recovery]:
    inbox = write_files(folder / "in", FILES, max(1, int(ROWS * SCALE)), "csv")
    home, taken = folder / "home", list[Recovery]()
    with Lading(home) as service:
        service.sql(
            "CREATE DATABASE shop; USE shop; CREATE TABLE t (id BIGINT, city STRING, amount DECIMAL(10,2)) USING delta;"
            f'CREATE JOB j PROPERTIES ("s3.max_batch_files"="{BATCH_FILES}") ON STREAMING DO INSERT INTO t '
            f'SELECT id, upper(city), amount * 1.1 FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", '
            '"column_separator"=",") WHERE city <> \'city 7\''
        )
    table = home / "warehouse" / "shop" / "t"
    process, old = _start(home), 0
    try:
        for number in range(KILLS):
            first = _wait_for_commits(table, _loads(table) + 3)
            time.sleep((0.05, 0.2, 0.4, 0.6, 0.8)[number % 5])  # Somewhere in a batch.
            process.kill()
            began = time.perf_counter()
            process.wait()
            process = _start(home)
            before, left = max(first, _loads(table)), _uncommitted_rows(table)
            _wait_for_commits(table, before + 1)
            taken.append(Recovery(seconds=time.perf_counter() - began, rows_again=max(0, left - old)))
            old = left
            CONSOLE.print(f"kill {number + 1}: {taken[-1]}")
    finally:
        process.kill()
        process.wait()
    return taken


def _start(home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(home)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _wait_for_commits(table: Path, count: int) -> int:
    """Until there are so many commits with rows."""
    end_s = time.perf_counter() + PATIENCE_S
    while (there := _loads(table)) < count:
        if time.perf_counter() > end_s:
            msg = f"there are {there} commits, and {count} were waited for"
            raise RuntimeError(msg)
        time.sleep(0.02)
    return there


def _loads(table: Path) -> int:
    return sum('{"add"' in path.read_text() for path in (table / "_delta_log").glob("*.json"))


def _uncommitted_rows(table: Path) -> int:
    actions = [
        json.loads(line)
        for path in (table / "_delta_log").glob("*.json")
        for line in path.read_text().split("\n")
        if line
    ]
    known = {action["add"]["path"] for action in actions if "add" in action}
    rows = 0
    for path in table.rglob("*.parquet"):
        if str(path.relative_to(table)) not in known and "_delta_log" not in path.parts:
            try:
                rows += pq.read_metadata(path).num_rows
            except (OSError, ValueError):
                continue  # It was being written.
    return rows


def _show_recoveries(taken: list[Recovery]) -> None:
    shown = Table("kills", "to the next commit, median s", "worst s", "rows read again, median", "most")
    seconds, rows = [one.seconds for one in taken], [one.rows_again for one in taken]
    shown.add_row(
        str(len(taken)), f"{median(seconds):.1f}", f"{max(seconds):.1f}", f"{median(rows):,.0f}", f"{max(rows):,}"
    )
    CONSOLE.print(shown)
    CONSOLE.print(f"A batch is {BATCH_FILES} files of {int(ROWS * SCALE):,} rows: more is never read again.")
