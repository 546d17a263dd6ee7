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
    return load(rig)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """The same, for many questions of which none may change anything: the last of them finds it as it was."""
    made = load(Rig(tmp_path_factory.mktemp("unchanged")))
    before = made.lading.job("orders")
    yield made
    assert made.lading.job("orders") == before
    made.lading.close()


def load(rig: Rig) -> Rig:
    rig.put("a.csv", "1.00", "2.00")
    rig.put("b.csv", "wrong", "3.00")
    rig.put("c.csv", "4.00", "bad")
    rig.load(rig.create())
    return rig
