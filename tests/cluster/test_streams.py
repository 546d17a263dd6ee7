"""Routine loads from Kafka and Kinesis on a cluster, with keys of their own: exact through kills, no key is left."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from lading.service.facade import Lading
from lading.testing.kinesis.generator import Generator
from lading.testing.kinesis.reshard import Resharder
from lading.testing.kinesis.server import KinesisServer
from lading.testing.stream_check import lineage, rows_in_load_order
from tests.cluster.conftest import StartDriver
from tests.cluster.shown import UI, attempts_of, check_no_key
from tests.cluster.test_kills import STRAINED, busy_machine
from tests.crash.load_stories import Found, judge
from tests.crash.routine import KAFKA_COLUMNS, KINESIS_COLUMNS
from tests.support.cluster_driver import RUNNING
from tests.support.kafka_broker import KAFKA_PASSWORD, KAFKA_USER, KafkaBroker
from tests.support.kafka_generator import KafkaGenerator
from tests.support.other_readers import read_elsewhere
from tests.support.spark_cluster import SparkCluster

pytestmark = [pytest.mark.java, pytest.mark.slow]

ROWS = 2_000
"""Of each stream, at one time: a batch of each."""
STEPS = (RUNNING, "check.after", RUNNING, "commit.before", "commit.after", RUNNING)
ROUTINE = """USE shop; CREATE TABLE {name} (k STRING, n BIGINT, place STRING, number STRING) USING {form};
CREATE ROUTINE LOAD {name} ON {name} {columns} PROPERTIES("format"="json", "max_batch_interval"="5")
FROM {kind}({given})"""


def routine(name: str, form: str, kind: str, given: Mapping[str, str]) -> str:
    columns = KAFKA_COLUMNS if kind == "KAFKA" else KINESIS_COLUMNS
    words = ", ".join(f'"{key}"="{value}"' for key, value in given.items())
    return ROUTINE.format(name=name, form=form, columns=columns, kind=kind, given=words)


def from_kafka(broker: KafkaBroker, topic: str) -> dict[str, str]:
    """With a password, over TLS."""
    return {
        "kafka_broker_list": broker.secure_bootstrap,
        "kafka_topic": topic,
        "property.kafka_default_offsets": "OFFSET_BEGINNING",
        "property.security.protocol": "SASL_SSL",
        "property.sasl.mechanism": "PLAIN",
        "property.sasl.username": KAFKA_USER,
        "property.sasl.password": KAFKA_PASSWORD,
        "property.ssl.ca.pem": broker.certificate.read_text(),
    }


def from_kinesis(server: KinesisServer, stream: str) -> dict[str, str]:
    return {
        "aws.region": server.region,
        "aws.endpoint": server.endpoint,
        "aws.access_key": server.access_key,
        "aws.secret_key": server.secret_key,
        "kinesis_stream": stream,
        "property.kinesis_default_pos": "TRIM_HORIZON",
    }


def find(home: Path, name: str, form: str, sent: Mapping[str, int]) -> Found:
    """As Polars finds it; the order of each key comes from commits, files and rows."""
    read = read_elsewhere(form, home / "warehouse" / "shop" / name).to_pydict()
    with Lading(home) as lading:
        record, table = lading.any_job(f"shop.{name}"), lading.catalog.open_table("shop", name)
        ordered = list(rows_in_load_order(table, record.job_id))
        found = judge(list(zip(read["k"], read["n"], strict=True)), ordered, sent)
        is_clean = lading.verify(f"shop.{name}").is_clean
        return found + Found(commits=len(lineage(table, record.job_id)), corrupt=int(not is_clean))


def test_routine_loads_on_a_cluster_are_exact_through_kills_and_leave_no_key(
    tmp_path: Path,
    cluster: SparkCluster,
    start_driver: StartDriver,
    own_broker: KafkaBroker,
    kinesis: KinesisServer,
) -> None:
    """Executors, Python workers and the driver are killed while both streams are loaded, and one of them reshards."""
    name = f"s{uuid.uuid4().hex[:8]}"
    topic = KafkaGenerator(own_broker, name, partitions=2)
    client = kinesis.create_stream(name, 2)
    stream, shards = Generator(client, name), Resharder(client, name, seed=1)
    driver = start_driver(**STRAINED, **UI)
    driver.ask("sql", "CREATE DATABASE shop")
    driver.ask("sql", routine("clicks", "delta", "KAFKA", from_kafka(own_broker, name)))
    driver.ask("sql", routine("views", "iceberg", "KINESIS", from_kinesis(kinesis, name)))
    killed: list[int] = []

    def put(size: int) -> None:
        topic.grow(size)
        shards.reach(size)
        topic.put(ROWS)
        stream.put(ROWS)

    def kill(number: int) -> None:
        killed.append(cluster.kill_python_workers() if number % 2 else cluster.kill_executors(1))

    with busy_machine():
        for number, step in enumerate(STEPS):
            put(3 + number)
            states = driver.run({f"{step}:1": lambda number=number: kill(number)})  # type: ignore[misc]
            assert {state for state, _ in states.values()} == {"RUNNING"}, states
        print(f"{sum(killed)} killed at {len(killed)} steps; {attempts_of(driver)}")
        put(3 + len(STEPS))
        driver.tell("run", [f"{RUNNING}:1"])
        assert driver.hear() == f"{RUNNING}:1"
        driver.kill()
        driver = start_driver(**STRAINED, **UI)
        states = driver.run({})
    assert {state for state, _ in states.values()} == {"RUNNING"}, states
    assert len(killed) == len(STEPS)
    assert min(killed) > 0
    assert not stream.maybe_twice
    check_no_key(cluster, driver, driver.ask("facts"))
    driver.ask("close")
    for table, form, sent in (("clicks", "delta", topic.sent), ("views", "iceberg", stream.sent)):
        found = find(tmp_path / "home", table, form, sent)
        print(f"{table}: {found}")
        assert found.is_clean, found
        assert found.rows == sum(sent.values())
