"""A real server for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lading.testing.kinesis.server import KinesisServer, NoNodeError, serve_kinesis


@pytest.fixture(scope="session")
def kinesis() -> Iterator[KinesisServer]:
    """kinesis-local. Skips, and says so, where there is no Node."""
    try:
        with serve_kinesis() as server:
            yield server
    except NoNodeError as error:
        pytest.skip(f"THE KINESIS TESTS DID NOT RUN: {error}")
