"""Section "kinesis": a routine load of 8 shards into Delta beside a bare GetRecords loop over the same shards.

The endpoint is one that makes its records while they are read and costs little beside its clients; see
`tests.support.kinesis.canned`. The pace that the real service imposes (2 MB/s per shard) is lifted for both.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table
from tests.support.kinesis.canned import STREAM, serve_canned

from bench.driver_memory import Watch, cpu_s
from lading.jobs.record import JobRecord
from lading.pipeline.java import find_java
from lading.pipeline.session import open_session
from lading.service.compile.compiled import Compiled
from lading.service.facade import Lading
from lading.sources.kinesis.spec import Pace
from lading.tables.base import LakeTable
from lading.testing.kinesis.server import KinesisServer

SCALE = float(os.environ.get("LADING_BENCH_SCALE", "1"))
SHARDS = 8
RECORDS = max(1_000, int(1_000_000 * SCALE) // SHARDS)
ROUNDS = 3
BATCH_ROWS = 200_000
UNLIMITED = Pace(calls_per_s=1e6, bytes_per_s=1e12)
TABLE = (
    "CREATE TABLE t (id BIGINT, city STRING, amount DECIMAL(10,2), url STRING, agent STRING, note STRING) USING delta"
)


class Unpaced(Lading):
    """Reads as fast as the endpoint answers."""

    def compile(self, record: JobRecord, **more: Any) -> tuple[Compiled, LakeTable]:
        compiled, table = super().compile(record, **more)
        assert compiled.stage is not None
        read: Any = compiled.stage.tools.read
        spec = replace(read.args[0], pace=UNLIMITED)
        tools = replace(compiled.stage.tools, read=partial(read.func, spec))
        return replace(compiled, stage=replace(compiled.stage, tools=tools)), table


def run() -> None:
    """Measure and print the tables."""
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
    spark = open_session({}, find_java(os.environ, folder), folder)
    console, total = Console(), SHARDS * RECORDS
    title = f"{total:,} records of 1 KB, {SHARDS} shards"
    shown = Table("round", "Lading rows/s", "bare loop rows/s", "ratio", "CPU µs per row: Lading", "bare", title=title)
    watch = Watch()
    try:
        with serve_canned(SHARDS, RECORDS) as server:
            for number in range(ROUNDS):
                used = [cpu_s("canned")]
                mine = total / _lading(spark, folder / str(number), server, watch)
                used.append(cpu_s("canned"))
                bare = total / _bare(server)
                used.append(cpu_s("canned"))
                each = [f"{(after - before) / total * 1e6:.1f}" for before, after in pairwise(used)]
                shown.add_row(str(number + 1), f"{mine:,.0f}", f"{bare:,.0f}", f"{mine / bare:.2f}", *each)
    finally:
        spark.stop()
        shutil.rmtree(folder)
    console.print(shown)
    console.print("The first round is cold. The bare loop has a thread for each shard and throws the records away.")
    console.print(watch.table("Memory of the driver after each batch"))


def _lading(spark: SparkSession, home: Path, server: KinesisServer, watch: Watch) -> float:
    with Unpaced(home, session=spark) as lading:
        lading.sql(
            f"CREATE DATABASE b; USE b; {TABLE};"
            f'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="json", "max_batch_rows"="{BATCH_ROWS}") '
            f'FROM KINESIS("aws.region"="{server.region}", "aws.endpoint"="{server.endpoint}", '
            f'"aws.access_key"="{server.access_key}", "aws.secret_key"="{server.secret_key}", '
            f'"kinesis_stream"="{STREAM}", "property.kinesis_default_pos"="TRIM_HORIZON")'
        )
        began = time.perf_counter()
        lading.run(on_progress=lambda record, bill: watch.note(bill.totals.rows.loaded))
        took = time.perf_counter() - began
        loaded = lading.bills(lading.any_job("b.j"), 1)[0].totals.rows.loaded
        assert loaded == SHARDS * RECORDS, loaded
        return took


def _bare(server: KinesisServer) -> float:
    client, counts = server.client(), [0] * SHARDS

    def read(number: int) -> None:
        iterator = client.get_shard_iterator(
            StreamName=STREAM, ShardId=f"shardId-{number:012d}", ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while counts[number] < RECORDS:
            answer = client.get_records(ShardIterator=iterator, Limit=10_000)
            counts[number] += len(answer["Records"])
            iterator = answer["NextShardIterator"]

    threads = [threading.Thread(target=read, args=(number,)) for number in range(SHARDS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == SHARDS * RECORDS
    return time.perf_counter() - began
