"""Brokers as fixtures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lading.testing.kafka_broker import KafkaBroker, KafkaMissingError, MockKafka, serve_kafka
from tests.sources.kafka.support import Topic


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """One real broker for the whole run. Tests that kill it start it again."""
    try:
        serving = serve_kafka()
        running = serving.__enter__()
    except KafkaMissingError as missing:
        pytest.skip(f"NOT PROVED, no real Kafka: {missing}")
    yield running
    serving.__exit__(None, None, None)


@pytest.fixture
def own_broker(broker: KafkaBroker) -> KafkaBroker:
    """A broker that may be killed, and that listens with a password too."""
    if not broker.is_ours:
        pytest.skip(f"NOT PROVED: the Kafka at {broker.bootstrap} may not be killed")
    return broker


@pytest.fixture
def topic(broker: KafkaBroker) -> Topic:
    """A new topic with one partition on the real broker."""
    return Topic(broker)


@pytest.fixture(scope="session")
def mock() -> MockKafka:
    """An imitation; topics of four partitions come into being when they are first written."""
    return MockKafka()
