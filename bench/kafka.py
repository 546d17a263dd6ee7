"""Section "kafka": a routine load of 8 partitions into Delta, beside bare loops and Structured Streaming.

One bare loop throws the messages away, the other parses them and throws the values away.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import orjson
import pyarrow.parquet as pq
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession
from rich.console import Console
from tests.support.kafka_broker import KafkaBroker, KafkaMissingError, serve_kafka
from tests.support.kafka_topics import Topics
from tests.support.kinesis.canned import message

from bench.compare.check import data_files
from bench.compare.contenders import KAFKA_SPARK, SPARK_KAFKA, Contender
from bench.compare.environments import NotInstalledError
from bench.compare.server import Server, Taken
from bench.driver_memory import Watch, cpu_s
from bench.pages import Pages, markdown_table
from bench.peers.kafka_columns import COLUMNS
from bench.peers.order import Order
from bench.scale import FOLDER, ROUNDS, SCALE
from lading.pipeline.java import find_java
from lading.pipeline.session import open_session
from lading.service.facade import Lading

PARTITIONS = 8
RECORDS = max(1_000, int(1_000_000 * SCALE) // PARTITIONS)
TOTAL = PARTITIONS * RECORDS
OTHER = Contender(
    name="streaming-kafka",
    title=f"Structured Streaming → Parquet (Spark {KAFKA_SPARK})",
    module="streaming_kafka_load",
    environment=SPARK_KAFKA,
)


def run(pages: Pages) -> None:
    """Measure and show the tables."""
    console = Console()
    try:
        with serve_kafka() as broker:
            _measure(broker, console, pages)
    except KafkaMissingError as error:
        console.print(f"[bold red]NOT MEASURED: {error}")


def _measure(broker: KafkaBroker, console: Console, pages: Pages) -> None:
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-", dir=FOLDER))
    spark = open_session({}, find_java(os.environ, folder), folder)
    watch = Watch()
    taken: dict[str, list[Taken]] = {}
    try:
        _fill(broker)
        with ExitStack() as stack:
            other = _other_spark(stack, folder, console)
            for number in range(1 + ROUNDS):
                own = partial(_lading, spark, folder / str(number), broker, watch)
                each: dict[str, Callable[[], float]] = {"Lading": own}
                each["bare loop that parses"] = partial(_bare, broker, orjson.loads)
                each["bare loop"] = partial(_bare, broker, len)
                if other is not None:
                    order = _order(broker, folder / f"other-{number}")
                    each[OTHER.title] = partial(_streaming, other, order)
                for name, load in each.items():
                    taken.setdefault(name, []).append(_timed(load))
                    console.print(f"{name}, round {number}: {TOTAL / taken[name][-1].seconds:,.0f} rows/s")
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    pages.show("kafka", _table(taken))
    console.print(watch.table("Memory of the driver after each batch"))


def _timed(load: Callable[[], float]) -> Taken:
    before = cpu_s("kafka.Kafka")
    seconds = load()
    return Taken(seconds=seconds, cpu_s=cpu_s("kafka.Kafka") - before, peak_mb=0.0)


def _table(taken: dict[str, list[Taken]]) -> str:
    """The first round is cold, and shown apart."""
    rows: list[list[str]] = []
    for name, rounds in taken.items():
        ratios = [one.seconds / ours.seconds for one, ours in zip(rounds[1:], taken["Lading"][1:], strict=True)]
        rows.append(
            [
                name,
                f"{TOTAL / rounds[0].seconds:,.0f}",
                f"{TOTAL / median(one.seconds for one in rounds[1:]):,.0f}",
                f"{median(ratios):.2f}",
                f"{median(one.cpu_s for one in rounds[1:]) / TOTAL * 1e6:.2f}",
            ]
        )
    head = ("", "rows/s, first round", "rows/s, warm", "Lading / it, warm", "CPU s per million rows")
    told = f"{TOTAL:,} messages of 1 KB JSON, {PARTITIONS} partitions; medians of {ROUNDS} warm rounds."
    return f"{markdown_table(head, rows)}\n\n{told}"


def _other_spark(stack: ExitStack, folder: Path, console: Console) -> Server | None:
    try:
        return stack.enter_context(Server(OTHER, folder / "other"))
    except NotInstalledError as error:
        console.print(f"[bold red]STRUCTURED STREAMING IS NOT MEASURED: {error}")
        return None


def _order(broker: KafkaBroker, home: Path) -> Order:
    return Order(form="kafka", ending="", inbox=broker.bootstrap, home=str(home), extra={}, once=False)


def _fill(broker: KafkaBroker) -> None:
    Topics(broker).create("bench", PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "log_level": 0})
    for number in range(TOTAL):
        while True:
            try:
                producer.produce("bench", message(number), partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(120) == 0


def _lading(spark: SparkSession, home: Path, broker: KafkaBroker, watch: Watch) -> float:
    with Lading(home, session=spark) as lading:
        lading.sql(
            f"CREATE DATABASE b; USE b; CREATE TABLE t ({COLUMNS}) USING delta;"
            'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="json", "max_batch_rows"="200000") '
            f'FROM KAFKA("kafka_broker_list"="{broker.bootstrap}", "kafka_topic"="bench", '
            '"property.kafka_default_offsets"="OFFSET_BEGINNING")'
        )
        began = time.perf_counter()
        lading.run(on_progress=lambda record, bill: watch.note(bill.totals.rows.loaded))
        took = time.perf_counter() - began
        loaded = lading.bills(lading.any_job("b.j"), 1)[0].totals.rows.loaded
        assert loaded == TOTAL, loaded
        return took


def _bare(broker: KafkaBroker, use: Callable[[bytes], Any]) -> float:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "bare", "enable.auto.commit": False})
    began, count = time.perf_counter(), 0
    consumer.assign([TopicPartition("bench", number, 0) for number in range(PARTITIONS)])
    while count < TOTAL:
        for got in consumer.consume(4096, 0.5):
            value = got.value()
            if got.error() is None and value is not None:
                use(value)
                count += 1
    took = time.perf_counter() - began
    consumer.close()
    return took


def _streaming(other: Server, order: Order) -> float:
    took = other.load(order).seconds
    loaded = sum(pq.read_metadata(file).num_rows for file in data_files(order.out))
    assert loaded == TOTAL, loaded
    return took
