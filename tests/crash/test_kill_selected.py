"""Jobs with state that select from a stream are killed; DuckDB computes the same from all that was sent."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Producer

from lading.testing.kinesis.server import KinesisServer
from tests.crash.state_stories import Event, Inbox, Stories
from tests.crash.test_kill_state import IN_RESTARTS
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics

pytestmark = pytest.mark.java

NAMES = ("id", "at", "city", "n")


class Shards:
    """An inbox that is a stream of Kinesis. Rows with the same key are in the same shard, in order."""

    limits = ""

    def __init__(self, server: KinesisServer) -> None:
        self._stream = f"s{uuid.uuid4().hex[:8]}"
        self._client = server.create_stream(self._stream, 2)
        given = {
            "aws.region": server.region,
            "kinesis_stream": self._stream,
            "aws.endpoint": server.endpoint,
            "aws.access_key": server.access_key,
            "aws.secret_key": server.secret_key,
            "property.kinesis_default_pos": "TRIM_HORIZON",
            "format": "json",
        }
        self.source = "KINESIS(" + ", ".join(f'"{name}"="{value}"' for name, value in given.items()) + ")"

    def put(self, rows: Sequence[Event]) -> None:
        for row in rows:
            record = json.dumps(dict(zip(NAMES, row, strict=True))).encode()
            self._client.put_record(StreamName=self._stream, Data=record, PartitionKey=str(row[0]))


class Partitions:
    """An inbox that is a topic of Kafka. Rows with the same key are in the same partition, in order."""

    limits = ""

    def __init__(self, broker: KafkaBroker) -> None:
        self._topic = f"t{uuid.uuid4().hex[:8]}"
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        Topics(broker).create(self._topic, 2)
        given = {
            "kafka_broker_list": broker.bootstrap,
            "kafka_topic": self._topic,
            "property.kafka_default_offsets": "OFFSET_BEGINNING",
            "format": "json",
        }
        self.source = "KAFKA(" + ", ".join(f'"{name}"="{value}"' for name, value in given.items()) + ")"

    def put(self, rows: Sequence[Event]) -> None:
        for row in rows:
            record = json.dumps(dict(zip(NAMES, row, strict=True)))
            self._producer.produce(self._topic, record, partition=row[0] % 2)
        assert self._producer.flush(10) == 0


def check_kills(path: Path, form: str, inbox: Inbox) -> None:
    """Rows come, and a process is killed, as often as there are steps: each time in the restart after another kill."""
    rng = Random(form)
    stories = Stories(path, {"shop": form}, rng, inbox)
    for number, step in enumerate(rng.sample(IN_RESTARTS, len(IN_RESTARTS))):
        stories.put(1)
        assert stories.run(1 + number % 3, f"{step}=kill:{rng.randint(1, 2)}"), step
    found = stories.end(2)
    assert found.is_clean, found
    assert found.kills == len(IN_RESTARTS)


@pytest.mark.slow
def test_jobs_over_shards_are_killed_at_every_step_one_after_the_other(kinesis: KinesisServer, tmp_path: Path) -> None:
    check_kills(tmp_path, "delta", Shards(kinesis))


@pytest.mark.slow
def test_jobs_over_a_topic_are_killed_at_every_step_one_after_the_other(broker: KafkaBroker, tmp_path: Path) -> None:
    check_kills(tmp_path, "iceberg", Partitions(broker))
