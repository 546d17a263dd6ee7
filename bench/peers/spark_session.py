"""A session of plain Spark, as a user would start it on this machine, with the memory that Lading gives its own."""

from __future__ import annotations

import os
import time
from functools import cache

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bench.peers.order import KEPT, Order


@cache
def session() -> SparkSession:
    """The one of this process. LADING_BENCH_JARS names jars it needs, LADING_BENCH_DELTA says that Delta is one."""
    home = os.environ["LADING_BENCH_HOME"]
    settings = {
        "spark.master": os.environ.get("LADING_BENCH_MASTER", "local[*]"),
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": f"{home}/tmp",
        "spark.sql.warehouse.dir": f"{home}/warehouse",
        "spark.jars": os.environ.get("LADING_BENCH_JARS", ""),
    }
    if "LADING_BENCH_DELTA" in os.environ:
        settings["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
        settings["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    opened = builder.getOrCreate()
    opened.sparkContext.setLogLevel("ERROR")
    return opened


def mapped_stream(order: Order) -> DataFrame:
    """The files as a stream, filtered and mapped."""
    reader = session().readStream.schema(", ".join(f"{name} {kind}" for name, kind in order.types.items()))
    if order.form == "csv":
        reader = reader.option("header", "true")
    rows = reader.format(order.form).load(order.inbox)
    return rows.where(KEPT).selectExpr(*(f"{text} AS {name}" for name, text in order.expressions.items()))


def load_all(writer: DataStreamWriter, order: Order) -> float:
    """Seconds from the start of a query that loads what is there, to its end."""
    began = time.perf_counter()
    query = writer.option("checkpointLocation", f"{order.home}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    return time.perf_counter() - began


def follow_files(writer: DataStreamWriter, order: Order) -> float:
    """A query that looks for files as soon as it is done with the last ones, until the order is over."""
    began = time.perf_counter()
    query: StreamingQuery = writer.option("checkpointLocation", f"{order.home}/checkpoint").start()
    while not order.is_over():
        if not query.isActive:
            msg = f"the query ended: {query.exception()}"
            raise RuntimeError(msg)
        time.sleep(0.1)
    query.stop()
    return time.perf_counter() - began
