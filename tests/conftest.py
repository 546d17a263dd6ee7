"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.guarded_s3 import GuardedStore, serve_guarded_s3
from tests.tables.s3_server import S3Server, serve_s3


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One S3-compatible store for the whole run."""
    with serve_s3() as server:
        yield server


@pytest.fixture(scope="session")
def guarded() -> Iterator[GuardedStore]:
    """One store that looks at keys and roles for the whole run."""
    with serve_guarded_s3() as store:
        yield store
