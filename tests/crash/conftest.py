"""Real servers, one of each for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lading.testing.kafka_broker import KafkaBroker, KafkaMissingError, serve_kafka
from lading.testing.kinesis.server import KinesisServer, NoNodeError, serve_kinesis


@pytest.fixture(scope="session")
def kinesis() -> Iterator[KinesisServer]:
    """kinesis-local. Skips, and says so, where there is no Node."""
    try:
        with serve_kinesis() as server:
            yield server
    except NoNodeError as error:
        pytest.skip(f"NOT PROVED, no Kinesis: {error}")


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """One real broker."""
    try:
        serving = serve_kafka()
        running = serving.__enter__()
    except KafkaMissingError as missing:
        pytest.skip(f"NOT PROVED, no real Kafka: {missing}")
    yield running
    serving.__exit__(None, None, None)
