"""Each pair of stops: one somewhere in a life of a job with state, and one somewhere in the life after it.

`pytest -m slow -s tests/service/test_stop_pairs.py` prints what was counted.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from lading.tables.registry import NAMES
from tests.crash.stop_chain import Chain, Stop, all_stops, every_pair, slices

PARTS = 4
"""Each with a home of its own."""
SHORT = (
    Stop("merge.after", 1),
    Stop("commit.before", 1),
    Stop("bill.after", 2),
    Stop("commit.after", 2),
    Stop("start.before", 1),
    Stop("follow.before", 2),
)


def walk() -> list[Stop]:
    stops = list(all_stops())
    Random(1).shuffle(stops)
    return every_pair(stops)


def test_a_walk_has_every_pair_of_stops() -> None:
    stops = all_stops()
    assert len(set(stops)) == len(stops) == 24
    pairs = [pair for part in slices(walk(), PARTS) for pair in pairwise(part)]
    assert sorted(map(str, pairs)) == sorted(str((one, other)) for one in stops for other in stops)


def test_six_stops_one_after_the_other(tmp_path: Path, spark: SparkSession) -> None:
    chain = Chain(tmp_path, "delta", "counts", spark, "short")
    for stop in SHORT:
        chain.live(stop)
    found = chain.end()
    assert found.is_clean, found
    assert (found.kills, found.results > 0) == (14, True)


@pytest.mark.slow
@pytest.mark.parametrize("form", NAMES)
@pytest.mark.parametrize("kind", ["counts", "joins"])
@pytest.mark.parametrize("part", range(PARTS))
def test_each_stop_after_each_other_one(tmp_path: Path, spark: SparkSession, form: str, kind: str, part: int) -> None:
    chain = Chain(tmp_path, form, kind, spark, f"{form} {kind} {part}")
    stops = slices(walk(), PARTS)[part]
    for stop in stops:
        chain.live(stop)
    found = chain.end()
    assert chain.stops == stops
    assert found.is_clean, found
