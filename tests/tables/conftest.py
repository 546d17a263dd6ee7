"""Rigs as fixtures."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.tables.rig import Rig, RigFactory
from tests.tables.rigs import ALL_RIGS, LAKE_RIGS
from tests.tables.s3_server import S3Server


def _name(factory: RigFactory) -> str:
    return factory.__name__


@pytest.fixture(params=ALL_RIGS, ids=_name)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    """Every table there is."""
    return _make(request, tmp_path)


@pytest.fixture(params=LAKE_RIGS, ids=_name)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    """Every table with real files."""
    return _make(request, tmp_path)


@pytest.fixture(params=[factory for factory in LAKE_RIGS if "s3" not in _name(factory)], ids=_name)
def local_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    """Every table with real files, for what does not depend on where they are."""
    return _make(request, tmp_path)


@pytest.fixture(params=[factory for factory in LAKE_RIGS if "s3" in _name(factory)], ids=_name)
def bucket_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    """Every table in a bucket."""
    return _make(request, tmp_path)


def _make(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    factory = cast("RigFactory", request.param)
    s3 = cast("S3Server", request.getfixturevalue("s3")) if "s3" in _name(factory) else None
    return factory(tmp_path, s3)
