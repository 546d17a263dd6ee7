"""Brokers as fixtures."""

from __future__ import annotations

import pytest

from tests.sources.kafka.support import Topic
from tests.support.kafka_broker import KafkaBroker, MockKafka


@pytest.fixture
def topic(broker: KafkaBroker) -> Topic:
    """A new topic with one partition on the real broker."""
    return Topic(broker)


@pytest.fixture(scope="session")
def mock() -> MockKafka:
    """An imitation; topics of four partitions come into being when they are first written."""
    return MockKafka()
