"""Places as fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sources.support import Place


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A folder and a bucket."""
    return Place(tmp_path if request.param == "local" else request.getfixturevalue("s3"))


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    """A folder only."""
    return Place(tmp_path)
