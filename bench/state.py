"""Section "state": windows and deduplication beside Structured Streaming with RocksDB, on the same files and session.

Structured Streaming keeps its state in RocksDB with changelog checkpoints, which is what it recommends for large state.
Then the time to come back: from the start of a process, with all of the state there, to the first commit of new rows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from lading.pipeline.java import find_java
from lading.pipeline.session import open_session

ROUNDS = int(os.environ.get("LADING_BENCH_ROUNDS", "3"))
SCALE = float(os.environ.get("LADING_BENCH_SCALE", "1"))
FILES, PER_BATCH = 20, 2
CONSOLE = Console()
DAY_US = 1_767_225_600_000_000
ROCKS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is measured."""

    rows: int
    keys: int
    lading: str
    """Columns of the table, properties, and the statement from SELECT on."""
    properties: str
    columns: str
    streaming: Callable[[DataFrame], DataFrame]


def _windows(rows: DataFrame) -> DataFrame:
    from pyspark.sql.functions import count, sum, window

    late = rows.withWatermark("at", "1 minute")
    counted = late.groupBy(window("at", "1 minute"), "k").agg(count("*").alias("many"), sum("n").alias("total"))
    return counted.selectExpr("window.start AS minute", "k", "many", "total")


def _dedup(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "1 day").dropDuplicatesWithinWatermark(["k"])


WINDOWS = {
    "lading": "SELECT window.start, k, count(*), sum(n) FROM {source} GROUP BY window(at, '1 minute'), k",
    "properties": '"watermark.column"="at", "watermark.delay"="1 minute"',
    "columns": "minute DATETIME, k BIGINT, many BIGINT, total BIGINT",
}
CASES = {
    "windows, 0.5 M keys": Case(rows=5_000_000, keys=500_000, streaming=_windows, **WINDOWS),
    "windows, 5 M keys": Case(rows=10_000_000, keys=5_000_000, streaming=_windows, **WINDOWS),
    "deduplication, 10 M keys": Case(
        rows=12_000_000,
        keys=10_000_000,
        lading="SELECT k, at, n FROM {source}",
        properties='"watermark.column"="at", "watermark.delay"="1 day", "dedup.keys"="k", "dedup.horizon"="1 day"',
        columns="k BIGINT, at DATETIME, n BIGINT",
        streaming=_dedup,
    ),
}


def run() -> None:
    """Measure and print, each figure as soon as it is known."""
    shown = Table("case", "rows", "Lading, rows/s", "Structured Streaming, rows/s", "ratio")
    back = Table("case", "back without state, s", "back with state, s", "ratio", "Structured Streaming with state, s")
    for name, case in CASES.items():
        folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
        try:
            rows = write_rows(folder / "in", case)
            rates = _rates(folder, case)
            ours, theirs = (rows / median(rates[who]) for who in ("lading", "streaming"))
            ratio = median(b / a for a, b in zip(rates["lading"], rates["streaming"], strict=True))
            shown.add_row(name, f"{rows:,}", f"{ours:,.0f}", f"{theirs:,.0f}", f"{ratio:.2f}")
            if name.startswith("dedup"):
                plain, kept, other = (_back(folder, who) for who in ("plain", "lading", "streaming"))
                back.add_row(name, f"{plain:.1f}", f"{kept:.1f}", f"{kept / plain:.2f}", f"{other:.1f}")
        finally:
            shutil.rmtree(folder)
    CONSOLE.print(shown)
    CONSOLE.print(back)
    CONSOLE.print(
        f"Interleaved, {ROUNDS} rounds in one session, {FILES} files in batches of {PER_BATCH}; ratios are of "
        "neighbours, medians of all rounds, above 1 Lading is faster. Back: a process is started, loads one more "
        "file and ends."
    )


def write_rows(folder: Path, case: Case) -> int:
    """Parquet files: keys at random, times in order but for ten seconds, an hour in all."""
    folder.mkdir(parents=True)
    rng, rows = np.random.default_rng(7), int(case.rows * SCALE) // FILES
    for number in range(FILES):
        _write_file(folder / f"{number:03}.parquet", rng, rows, int(case.keys * SCALE), number)
    return rows * FILES


def _write_file(path: Path, rng: np.random.Generator, rows: int, keys: int, number: int) -> None:
    place = (number * rows + np.arange(rows)) / (rows * FILES)
    times = DAY_US + (place * 3600e6).astype(np.int64) - rng.integers(0, 10_000_000, rows)
    columns = {
        "k": rng.integers(0, keys, rows),
        "at": pa.array(times, pa.timestamp("us")),
        "n": rng.integers(0, 1000, rows),
    }
    pq.write_table(pa.table(columns), path)


def _rates(folder: Path, case: Case) -> dict[str, list[float]]:
    spark = open_session(ROCKS, find_java(os.environ, folder), folder)
    taken: dict[str, list[float]] = {"lading": [], "streaming": []}
    try:
        for number in range(ROUNDS):
            for who, load in {"lading": lading, "streaming": streaming}.items():
                home = folder / f"{who}-{number}"
                seconds = load(spark, home, folder / "in", case)
                CONSOLE.print(f"{who}, round {number}: {seconds:.1f} s")
                taken[who].append(seconds)
        plain = Case(rows=0, keys=0, lading="SELECT k, at, n FROM {source}", properties='"max_interval"="1"',
                     columns="k BIGINT, at DATETIME, n BIGINT", streaming=lambda rows: rows)  # fmt: skip
        lading(spark, folder / "plain-0", folder / "in", plain)
    finally:
        spark.stop()
    return taken


def lading(spark: SparkSession, home: Path, inbox: Path, case: Case) -> float:
    """A job over the files, until all are loaded."""
    from lading.service.facade import Lading

    source = f'FILE("uri"="{inbox}/*.parquet", "format"="parquet")'
    with Lading(home, session=spark) as service:
        service.sql(
            f"CREATE TABLE t ({case.columns}) USING delta; CREATE JOB j PROPERTIES ({case.properties}, "
            f'"s3.max_batch_files"="{PER_BATCH}", "file.settle_seconds"="0") ON STREAMING DO INSERT INTO t '
            + case.lading.format(source=source)
        )
        began = time.perf_counter()
        service.run()
        return time.perf_counter() - began


def streaming(spark: SparkSession, home: Path, inbox: Path, case: Case) -> float:
    """The same as a query, written by hand."""
    rows = spark.readStream.schema("k BIGINT, at TIMESTAMP, n BIGINT").option("maxFilesPerTrigger", PER_BATCH)
    began = time.perf_counter()
    query = (
        case.streaming(rows.parquet(str(inbox)))
        .writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", str(home / "checkpoint"))
        .option("path", str(home / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return time.perf_counter() - began


def _back(folder: Path, who: str) -> float:
    """Seconds from the start of a process to its first commit of one more small file, and its end."""
    _write_file(folder / "in" / f"9{who}.parquet", np.random.default_rng(9), 1000, 1000, FILES)
    began = time.perf_counter()
    home = folder / f"{who}-0"
    command = [sys.executable, "-m", "bench.state", who, str(home), str(folder / "in")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    CONSOLE.print(f"{who} is back after {seconds:.1f} s")
    return seconds


def main(who: str, home: str, inbox: str) -> None:
    """Start Spark, load what came, and end."""
    spark = open_session(ROCKS, find_java(os.environ, Path(home)), Path(home))
    if who == "streaming":
        streaming(spark, Path(home), Path(inbox), CASES["deduplication, 10 M keys"])
    else:
        from lading.service.facade import Lading

        with Lading(Path(home), session=spark) as service:
            service.run()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
