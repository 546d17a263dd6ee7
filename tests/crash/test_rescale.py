"""Loads from Kafka, Kinesis and files change their size and are killed; another reader counts what is in the tables.

All run on Spark in processes of their own, with as many tasks as the size says. In the first phase they are killed at
one size, then at another one that their sources take while they run, and then at any. `pytest -m slow -s
tests/crash/test_rescale.py` prints what was counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from lading.commit.steps import STEP_NAMES
from lading.tables.registry import NAMES
from lading.testing.kinesis.server import KinesisServer
from tests.crash.load_stories import (
    SOURCES,
    FilesSender,
    Found,
    KafkaSender,
    KinesisSender,
    Sender,
    Stories,
    Story,
    judge,
)
from tests.support.kafka_broker import KafkaBroker

IN_BATCHES = tuple(name for name in STEP_NAMES if not name.startswith(("edit", "start", "merge", "settle.before")))
SHAPES: dict[str, tuple[int, int] | None] = {"7 to 2": (7, 2), "2 to 7": (2, 7), "random": None}
TOGETHER = 6
"""Stories that share a process: two of each source."""
FEW = 40
"""Rows at one time, for the shortest of these: two starts of Spark."""
PHASES = 3
"""Each ends with a kill."""
GROUPS = 3
"""Of each shape: 54 stories."""


class Rescaling:
    """Where stories get their sources from."""

    def __init__(self, path: Path, broker: KafkaBroker, kinesis: KinesisServer) -> None:
        self._path, self._broker, self._kinesis = path, broker, kinesis

    def run(self, shape: str, kinds: Sequence[tuple[str, str]], seed: int) -> Found:
        """Three phases, each with a kill somewhere. `kinds` are sources and table formats."""
        rng = Random(seed)
        fixed = SHAPES[shape] or (rng.randint(1, 7), rng.randint(1, 7))
        sizes = (*fixed, rng.randint(1, 8))
        stories = self.stories(kinds, sizes, rng)
        for size in sizes:
            stories.put()
            # In a batch, not in the first takeover; a step with many jobs is met often.
            hit = rng.randint(2, 3 * len(kinds))
            failpoint = f"{rng.choice(IN_BATCHES)}=kill:{hit}"
            assert stories.run(size, failpoint, size=size), f"nothing was killed: {failpoint}"
        return stories.end(rng.choice(sizes))

    def stories(self, kinds: Sequence[tuple[str, str]], sizes: tuple[int, ...], rng: Random) -> Stories:
        """Jobs that have loaded nothing yet."""
        senders = [self._sender(source, number, sizes, rng) for number, (source, _) in enumerate(kinds)]
        named = [Story(f"s{number}", form, senders[number]) for number, (_, form) in enumerate(kinds)]
        return Stories(self._path, named)

    def _sender(self, source: str, number: int, sizes: tuple[int, ...], rng: Random) -> Sender:
        if source == "kafka":
            return KafkaSender(self._broker, min(sizes))
        if source == "kinesis":
            return KinesisSender(self._kinesis, sizes[0], rng)
        return FilesSender(self._path / f"in{number}", sizes[0], rng)


@pytest.fixture
def rescaling(tmp_path: Path, broker: KafkaBroker, kinesis: KinesisServer) -> Rescaling:
    return Rescaling(tmp_path, broker, kinesis)


@pytest.mark.slow
@pytest.mark.java
def test_a_load_of_each_source_is_killed_at_seven_and_goes_on_at_two(rescaling: Rescaling) -> None:
    stories = rescaling.stories([(source, "delta") for source in SOURCES], (7, 2), Random(1))
    stories.put(FEW)
    assert stories.run(7, "commit.after=kill:2")
    stories.resize(2)
    stories.put(FEW)
    found = stories.end(2)
    assert found.is_clean, found
    assert (found.kills, found.rescales) == (1, 10)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.java
def test_many_loads_change_their_size_and_are_killed(rescaling: Rescaling, shape: str, group: int) -> None:
    kinds = [(SOURCES[n % 3], NAMES[(n + n // 3 + group) % len(NAMES)]) for n in range(TOGETHER)]
    found = rescaling.run(shape, kinds, 10 * list(SHAPES).index(shape) + group)
    assert found.is_clean, found
    assert found.kills == PHASES


def test_what_is_compared_can_be_wrong() -> None:
    rows, sent = [("a", 0), ("a", 1), ("b", 0)], {"a": 2, "b": 1}
    assert judge(rows, rows, sent) == Found(rows=3)
    assert judge(rows[1:], rows[1:], sent) == Found(rows=2, loss=1)
    assert judge([*rows, rows[0]], [rows[0], *rows], sent) == Found(rows=4, dup=1)
    assert judge(rows, [("a", 1), ("a", 0), ("b", 0)], sent) == Found(rows=3, reorder=1)
    assert judge([*rows, ("c", 0)], [*rows, ("c", 0)], sent) == Found(rows=4, corrupt=1)
    assert judge(rows, rows[:2], sent) == Found(rows=3, corrupt=1)
