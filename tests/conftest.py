"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tables.s3_server import S3Server, serve_s3


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One S3-compatible store for the whole run."""
    with serve_s3() as server:
        yield server
