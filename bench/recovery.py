"""Section "recovery": from SIGKILL to the next commit, what is read again, and what safety costs.

The cost is that of a load by Lading beside the same load by a bare Spark job, which reads the same files with the same
mapping and writes Parquet: no progress, no table, no count of rows. Both in one session, interleaved.
"""

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
from pyspark.sql import SparkSession
from rich.table import Table

from bench.contenders import lading
from bench.files import CONSOLE, SCALE, WARM_ROUNDS, write_files
from lading.pipeline.java import find_java
from lading.pipeline.session import open_session
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
        shutil.rmtree(folder)
        _show_cost(_cost(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def bare(spark: SparkSession, home: Path, inbox: Path) -> float:
    """Read, map, write; nothing else. The mapping is that of the other contenders."""
    source = spark.read.schema("id STRING, city STRING, amount STRING, note STRING").option("header", "true")
    mapped = (
        source.csv(str(inbox))
        .where("city <> 'city 7'")
        .selectExpr("CAST(id AS BIGINT) AS id", "upper(city) AS city", "CAST(amount * 1.1 AS DECIMAL(10,2)) AS amount")
    )
    began = time.perf_counter()
    mapped.write.parquet(str(home / "out"))
    return time.perf_counter() - began


def _cost(folder: Path) -> dict[str, list[float]]:
    inbox = write_files(folder / "in", 16, max(1, int(400_000 * SCALE)), "csv")
    spark = open_session({}, find_java(os.environ, folder), folder)
    taken: dict[str, list[float]] = {"lading": [], "bare": []}
    try:
        for number in range(1 + WARM_ROUNDS):
            seconds = {
                "lading": lading(spark, folder / f"lading-{number}", inbox, "csv"),
                "bare": bare(spark, folder / f"bare-{number}", inbox),
            }
            CONSOLE.print(f"round {number}: {seconds}")
            for name, took in seconds.items() if number else ():
                taken[name].append(took)
    finally:
        spark.stop()
    return taken


def _show_recoveries(taken: list[Recovery]) -> None:
    shown = Table("kills", "to the next commit, median s", "worst s", "rows read again, median", "most")
    seconds, rows = [one.seconds for one in taken], [one.rows_again for one in taken]
    shown.add_row(
        str(len(taken)), f"{median(seconds):.1f}", f"{max(seconds):.1f}", f"{median(rows):,.0f}", f"{max(rows):,}"
    )
    CONSOLE.print(shown)
    CONSOLE.print(f"A batch is {BATCH_FILES} files of {int(ROWS * SCALE):,} rows: more is never read again.")


def _show_cost(taken: dict[str, list[float]]) -> None:
    shown = Table("rounds", "Lading, s", "bare Spark job, s", "Lading / bare")
    ratio = median(ours / bare for ours, bare in zip(taken["lading"], taken["bare"], strict=True))
    shown.add_row(
        str(len(taken["bare"])), f"{median(taken['lading']):.1f}", f"{median(taken['bare']):.1f}", f"{ratio:.2f}"
    )
    CONSOLE.print(shown)
