"""Section "kafka": a routine load of 8 partitions into Delta, beside a bare consume loop and Structured Streaming."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyspark
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table
from tests.support.kafka_broker import KafkaBroker, KafkaMissingError, serve_kafka
from tests.support.kafka_topics import Topics
from tests.support.kinesis.canned import message

from bench.driver_memory import Watch, cpu_s
from lading.pipeline.java import find_java
from lading.pipeline.session import open_session
from lading.service.facade import Lading

SCALE = float(os.environ.get("LADING_BENCH_SCALE", "1"))
PARTITIONS = 8
RECORDS = max(1_000, int(1_000_000 * SCALE) // PARTITIONS)
TOTAL = PARTITIONS * RECORDS
ROUNDS = 3
COLUMNS = "id BIGINT, city STRING, amount DECIMAL(10,2), url STRING, agent STRING, note STRING"
CONNECTOR = "spark-sql-kafka-0-10_2.13"
FALLBACK = "4.2.0"
"""Not every release of Spark has its connector on Maven; this one can be tried with a later Spark."""
NEEDED = (CONNECTOR, "spark-token-provider-kafka-0-10_2.13", "kafka-clients", "commons-pool2")
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>lading</groupId><artifactId>spark-kafka</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>org.apache.spark</groupId><artifactId>{name}</artifactId>
<version>{version}</version></dependency></dependencies></project>
"""


def run() -> None:
    """Measure and print the tables."""
    console = Console()
    try:
        with serve_kafka() as broker:
            _measure(broker, console)
    except KafkaMissingError as error:
        console.print(f"[bold red]NOT MEASURED: {error}")


def _measure(broker: KafkaBroker, console: Console) -> None:
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
    jars, told = _connector(console)
    spark = open_session({"spark.jars": ",".join(jars)} if jars else {}, find_java(os.environ, folder), folder)
    title = f"{TOTAL:,} messages of 1 KB, {PARTITIONS} partitions"
    shown = Table("round", "contender", "rows/s", "Lading / it", "CPU µs per row", title=title)
    watch = Watch()
    try:
        _fill(broker)
        for number in range(ROUNDS):
            used = [cpu_s("kafka.Kafka")]
            rates = {"Lading": TOTAL / _lading(spark, folder / str(number), broker, watch)}
            used.append(cpu_s("kafka.Kafka"))
            rates["bare loop"] = TOTAL / _bare(broker)
            used.append(cpu_s("kafka.Kafka"))
            if jars:
                rates["Structured Streaming"] = TOTAL / _streaming(spark, folder / f"{number}-plain", broker)
                used.append(cpu_s("kafka.Kafka"))
            each = [f"{(after - before) / TOTAL * 1e6:.1f}" for before, after in pairwise(used)]
            for (name, rate), cpu in zip(rates.items(), each, strict=True):
                shown.add_row(str(number + 1), name, f"{rate:,.0f}", f"{rates['Lading'] / rate:.2f}", cpu)
    finally:
        spark.stop()
        shutil.rmtree(folder)
    console.print(shown)
    console.print(f"The first round is cold. The bare loop is one consumer that throws the messages away. {told}")
    console.print(watch.table("Memory of the driver after each batch"))


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


def _bare(broker: KafkaBroker) -> float:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "bare", "enable.auto.commit": False})
    began, count = time.perf_counter(), 0
    consumer.assign([TopicPartition("bench", number, 0) for number in range(PARTITIONS)])
    while count < TOTAL:
        count += sum(1 for got in consumer.consume(4096, 0.5) if got.error() is None and got.value())
    took = time.perf_counter() - began
    consumer.close()
    return took


def _streaming(spark: SparkSession, place: Path, broker: KafkaBroker) -> float:
    read: Any = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    read = (
        read.option("subscribe", "bench").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 200_000)
    )
    rows = read.load().selectExpr(f"from_json(CAST(value AS STRING), '{COLUMNS}') AS r").selectExpr("r.*")
    began = time.perf_counter()
    query = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", str(place / "checkpoint"))
        .option("path", str(place / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    took = time.perf_counter() - began
    loaded = spark.read.parquet(str(place / "out")).count()
    assert loaded == TOTAL, loaded
    return took


def _connector(console: Console) -> tuple[list[str], str]:
    """Spark's own Kafka source: the jars, and what to say about them."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lading"
    for version in dict.fromkeys((pyspark.__version__, FALLBACK)):
        place = cache / f"spark-kafka-{version}"
        if place.is_dir() or _fetch(place, version):
            jars = [str(jar) for jar in sorted(place.glob("*.jar")) if jar.name.startswith(NEEDED)]
            same = version == pyspark.__version__
            told = f"Spark {pyspark.__version__} with {'its' if same else 'an older'} Kafka connector, {version}."
            return jars, told
    console.print(f"[bold red]STRUCTURED STREAMING IS NOT MEASURED: Maven has no {CONNECTOR} for this Spark")
    return [], "Structured Streaming was not measured: no connector."


def _fetch(place: Path, version: str) -> bool:
    maven = shutil.which("mvn")
    if maven is None:
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as name:
        (Path(name) / "pom.xml").write_text(_POM.format(name=CONNECTOR, version=version))
        command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs"]
        done = subprocess.run(command, cwd=name, capture_output=True, timeout=600, check=False)
        if done.returncode:
            return False
        (Path(name) / "libs").rename(place)
    return True
