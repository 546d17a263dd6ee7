"""A home for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.lading.close()


@pytest.fixture
def loaded(rig: Rig) -> Rig:
    """Three files, four good rows, two bad ones."""
    rig.put("a.csv", "1.00", "2.00")
    rig.put("b.csv", "wrong", "3.00")
    rig.put("c.csv", "4.00", "bad")
    rig.load(rig.create())
    return rig
