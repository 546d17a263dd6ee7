"""A registry to write to and to read from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from tests.support.registry import TestRegistry


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    with TestRegistry() as running:
        yield running


@pytest.fixture
def client(registry: TestRegistry) -> Iterator[SchemaRegistryClient]:
    """What a producer uses."""
    with SchemaRegistryClient({"url": registry.url}) as opened:
        yield opened
