"""What section "state" measures: the rows, the statement of Lading, and the query of Structured Streaming beside it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count, expr, sum, window

from lading.service.facade import Lading

SCALE = float(os.environ.get("LADING_BENCH_SCALE", "1"))
FILES, PER_BATCH = 20, 2
DAY_US = 1_767_225_600_000_000
END = "TIMESTAMP '2026-01-02'"
"""A row of this time is the last one, and closes every window."""
_INPUTS = ("in", "names", "orders")
ROCKS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One of the things that are measured."""

    rows: int
    keys: int
    """Drawn at random from so many; 0: five of six rows have a new one."""
    columns: str
    """Of the table."""
    properties: str
    """Of the job, beside those that all have."""
    lading: str
    """From SELECT on."""
    streaming: Callable[[SparkSession, DataFrame, Path], DataFrame]
    result: str
    """What is compared of the results, as DuckDB computes it from the rows of the input."""
    compared: str
    """The same of a result that was written."""
    beside: Literal["", "names", "orders"] = ""
    """What is joined with: a table of one name for each key; or a second stream of as many rows."""


def _windows(minutes: int, rows: int, keys: int) -> Case:
    def query(spark: SparkSession, rows: DataFrame, folder: Path) -> DataFrame:
        counted = (
            rows.withWatermark("at", "1 minute")
            .groupBy(window("at", f"{minutes} minutes"), "k")
            .agg(count("*").alias("many"), sum("n").alias("total"))
        )
        return counted.selectExpr("window.start AS began", "k", "many", "total")

    return Case(
        rows=rows,
        keys=keys,
        columns="began DATETIME, k BIGINT, many BIGINT, total BIGINT",
        properties='"watermark.column"="at", "watermark.delay"="1 minute"',
        lading=f"SELECT window.start, k, count(*), sum(n) FROM {{source}} GROUP BY window(at, '{minutes} minutes'), k",
        streaming=query,
        result=f'SELECT epoch_us(time_bucket(INTERVAL {minutes} MINUTES, "at")), k, count(*), sum(n)::BIGINT '
        f'FROM input WHERE "at" < {END} GROUP BY ALL',
        compared="SELECT epoch_us(began), k, many, total FROM output",
    )


def _deduplicated(spark: SparkSession, rows: DataFrame, folder: Path) -> DataFrame:
    return rows.withWatermark("at", "1 day").dropDuplicatesWithinWatermark(["k"])


def _joined(spark: SparkSession, rows: DataFrame, folder: Path) -> DataFrame:
    return rows.join(spark.read.parquet(str(folder / "names")), "k").select("k", "at", "n", "name")


def _paired(spark: SparkSession, rows: DataFrame, folder: Path) -> DataFrame:
    clicks = rows.withWatermark("at", "1 minute").alias("c")
    orders = _followed(spark, folder / "orders").withWatermark("at", "1 minute").alias("o")
    near = expr("c.k = o.k AND o.at BETWEEN c.at AND c.at + INTERVAL 10 MINUTES")
    return clicks.join(orders, near).selectExpr("c.k", "c.at", "c.n", "o.at AS ordered", "o.n AS m")


def _followed(spark: SparkSession, folder: Path) -> DataFrame:
    files = spark.readStream.schema("k BIGINT, at TIMESTAMP, n BIGINT").option("maxFilesPerTrigger", PER_BATCH)
    return files.parquet(str(folder))


CASES = {
    "windows, 0.5 M keys": _windows(10, rows=5_000_000, keys=500_000),
    "windows, 5 M keys": _windows(20, rows=15_000_000, keys=5_000_000),
    "deduplication, 10 M keys": Case(
        rows=12_000_000,
        keys=0,
        columns="k BIGINT, at DATETIME, n BIGINT",
        properties='"watermark.column"="at", "watermark.delay"="1 day", "dedup.keys"="k", "dedup.horizon"="1 day"',
        lading="SELECT k, at, n FROM {source}",
        streaming=_deduplicated,
        result="SELECT DISTINCT k FROM input",  # Which row of a key is the first one is not the same for both.
        compared="SELECT k FROM output",
    ),
    "join with a table, 1 M keys": Case(
        rows=5_000_000,
        keys=1_000_000,
        columns="k BIGINT, at DATETIME, n BIGINT, name STRING",
        properties='"max_interval"="1"',
        lading="SELECT s.k, s.at, s.n, d.name FROM {source} AS s JOIN names AS d ON s.k = d.k",
        streaming=_joined,
        result='SELECT k, epoch_us("at"), n, name FROM input JOIN names USING (k)',
        compared='SELECT k, epoch_us("at"), n, name FROM output',
        beside="names",
    ),
    "join of two streams, 1 M keys": Case(
        rows=2_500_000,
        keys=1_000_000,
        columns="k BIGINT, at DATETIME, n BIGINT, ordered DATETIME, m BIGINT",
        properties='"watermark.column"="c.at, o.at", "watermark.delay"="1 minute"',
        lading="SELECT c.k, c.at, c.n, o.at, o.n FROM {source} AS c JOIN {orders} AS o ON c.k = o.k "
        "AND o.at BETWEEN c.at AND c.at + INTERVAL 10 MINUTES",
        streaming=_paired,
        result='SELECT c.k, epoch_us(c."at"), c.n, epoch_us(o."at"), o.n FROM input AS c JOIN orders AS o ON c.k = o.k '
        'AND o."at" BETWEEN c."at" AND c."at" + INTERVAL 10 MINUTES',
        compared='SELECT k, epoch_us("at"), n, epoch_us(ordered), m FROM output',
        beside="orders",
    ),
}
DEDUPLICATION = CASES["deduplication, 10 M keys"]
PLAIN = Case(
    rows=0,
    keys=0,
    columns="k BIGINT, at DATETIME, n BIGINT",
    properties='"max_interval"="1"',
    lading="SELECT k, at, n FROM {source}",
    streaming=lambda spark, rows, folder: rows,
    result='SELECT k, epoch_us("at"), n FROM input',
    compared='SELECT k, epoch_us("at"), n FROM output',
)


def write_rows(folder: Path, case: Case, scale: float = SCALE) -> int:
    """Parquet files: keys at random, times in order but for ten seconds, an hour in all; then a row of the next day."""
    rng, rows, keys = np.random.default_rng(7), max(1, int(case.rows * scale) // FILES), int(case.keys * scale)
    streams = ("in", "orders") if case.beside == "orders" else ("in",)
    for stream in streams:
        (folder / stream).mkdir(parents=True)
        for number in range(FILES):
            write_file(folder / stream / f"{number:03}.parquet", rng, rows, keys, number)
        last = 0 if keys else -1  # One that is in the table that is joined with; or a new one.
        columns = {"k": [last], "at": pa.array([DAY_US + 86_400_000_000], pa.timestamp("us")), "n": [0]}
        pq.write_table(pa.table(columns), folder / stream / f"{FILES:03}.parquet")
    if case.beside == "names":
        (folder / "names").mkdir()
        names = pa.array([f"the name of {number}" for number in range(keys)])
        pq.write_table(pa.table({"k": pa.array(range(keys)), "name": names}), folder / "names" / "0.parquet")
    return (rows * FILES + 1) * len(streams)


def write_file(path: Path, rng: np.random.Generator, rows: int, keys: int, number: int) -> None:
    place = (number * rows + np.arange(rows)) / (rows * FILES)
    times = DAY_US + (place * 3600e6).astype(np.int64) - rng.integers(0, 10_000_000, rows)
    columns = {
        "k": rng.integers(0, keys, rows) if keys else _mostly_new(rng, number * rows, rows),
        "at": pa.array(times, pa.timestamp("us")),
        "n": rng.integers(0, 1000, rows),
    }
    draft = path.with_suffix(".draft")
    pq.write_table(pa.table(columns), draft)
    draft.rename(path)


def _mostly_new(rng: np.random.Generator, first: int, rows: int) -> np.ndarray:
    """Numbers that look random. Each sixth was there before."""
    numbers = np.arange(first, first + rows, dtype=np.int64)
    places = np.where(rng.random(rows) < 1 / 6, (rng.random(rows) * numbers).astype(np.int64), numbers)
    return places * 0x5851F42D4C957F2D & 2**62 - 1


def lading(spark: SparkSession, home: Path, folder: Path, case: Case) -> float:
    """A job over the files, until all are loaded. Seconds."""
    source, names, orders = (f'FILE("uri"="{folder}/{of}/*.parquet", "format"="parquet")' for of in _INPUTS)
    per_batch = 2 * PER_BATCH if case.beside == "orders" else PER_BATCH
    with Lading(home, session=spark) as service:
        if case.beside == "names":
            service.sql(
                "CREATE TABLE names (k BIGINT, name STRING) USING delta; CREATE JOB names PROPERTIES "
                f'("file.settle_seconds"="0") ON STREAMING DO INSERT INTO names SELECT k, name FROM {names}'
            )
            service.run(["names"])
        service.sql(
            f"CREATE TABLE t ({case.columns}) USING delta; CREATE JOB j PROPERTIES ({case.properties}, "
            f'"s3.max_batch_files"="{per_batch}", "file.settle_seconds"="0") ON STREAMING DO INSERT INTO t '
            + case.lading.format(source=source, orders=orders)
        )
        began = time.perf_counter()
        service.run(["j"])
        return time.perf_counter() - began


def streaming(spark: SparkSession, home: Path, folder: Path, case: Case) -> float:
    """The same as a query, written by hand. Seconds."""
    began = time.perf_counter()
    query = (
        case.streaming(spark, _followed(spark, folder / "in"), folder)
        .writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", str(home / "checkpoint"))
        .option("path", str(home / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return time.perf_counter() - began


def check(home: Path, folder: Path, case: Case, who: str) -> int:
    """How many rows were written. Raises when they are not what DuckDB computes from the input."""
    with duckdb.connect() as database:
        database.sql("SET TimeZone = 'UTC'")
        for name in _INPUTS:
            if (folder / name).exists():
                view = "input" if name == "in" else name
                database.sql(f"CREATE VIEW {view} AS SELECT * FROM '{folder}/{name}/*.parquet'")
        if who == "lading":
            with Lading(home) as service:
                output = service.catalog.open_table("default", "t").scan()
            database.register("output", output)
        else:
            database.sql(f"CREATE VIEW output AS SELECT * FROM '{home}/out/*.parquet'")
        expected, found = (_digest(database, text) for text in (case.result, case.compared))
    if expected != found:
        msg = f"{who} wrote other rows than there should be: {found}, not {expected}"
        raise RuntimeError(msg)
    return found[0]


def _digest(database: duckdb.DuckDBPyConnection, text: str) -> tuple[int, int]:
    [(rows, hashes)] = database.sql(f"SELECT count(*), sum(hash(found, 7)::HUGEINT) FROM ({text}) AS found").fetchall()
    if not rows:
        msg = f"No rows: {text}"
        raise RuntimeError(msg)
    return int(rows), int(hashes)
