"""Structured Streaming from Kafka into its Parquet sink; the order's inbox is the broker."""

from __future__ import annotations

from typing import Any

from bench.peers.kafka_columns import BATCH_ROWS, COLUMNS, TOPIC
from bench.peers.order import Order
from bench.peers.spark_session import load_all, session


def load(order: Order) -> float:
    """Seconds from the start of the query to its end."""
    read: Any = session().readStream.format("kafka").option("kafka.bootstrap.servers", order.inbox)
    read = read.option("subscribe", TOPIC).option("startingOffsets", "earliest")
    read = read.option("maxOffsetsPerTrigger", BATCH_ROWS)
    rows = read.load().selectExpr(f"from_json(CAST(value AS STRING), '{COLUMNS}') AS r").selectExpr("r.*")
    return load_all(rows.writeStream.format("parquet").option("path", str(order.out)), order)
