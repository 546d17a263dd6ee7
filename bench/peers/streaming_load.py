"""Plain Structured Streaming into its Parquet sink."""

from __future__ import annotations

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
    return mapped_stream(order).writeStream.format("parquet").option("path", str(order.out))
