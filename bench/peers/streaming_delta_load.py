"""Structured Streaming with foreachBatch into Delta, exactly once as Delta's documentation says: by application id and
version of the batch."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bench.peers.order import Order
from bench.peers.spark_session import follow_files, load_all, mapped_stream


def load(order: Order) -> float:
    """Seconds from the start of the query to its end."""
    return load_all(_writer(order), order)


def follow(order: Order) -> float:
    """Whatever comes, until the order is over."""
    return follow_files(_writer(order), order)


def _writer(order: Order) -> DataStreamWriter:
    def append(batch: DataFrame, number: int) -> None:
        writer = batch.write.format("delta").mode("append").option("txnAppId", order.home).option("txnVersion", number)
        writer.save(str(order.out))

    return mapped_stream(order).writeStream.foreachBatch(append)
