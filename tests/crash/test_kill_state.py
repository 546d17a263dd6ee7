"""Jobs with state are killed and go on with another number of tasks; DuckDB computes the same from the whole input.

All run on Spark in processes of their own, which are killed in every phase: with seven tasks, with two, and with any
number. `pytest -m slow -s tests/crash/test_kill_state.py` prints what was counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from lading.commit.steps import STEP_NAMES
from lading.tables.registry import NAMES
from tests.crash.state_stories import Found, Stories, compare

IN_BATCHES = tuple(name for name in STEP_NAMES if not name.startswith(("edit", "start", "settle.before")))
"""Where every batch of a job with state passes."""
IN_RESTARTS = ("start.before", *IN_BATCHES, "start.after")
FIRST, THEN = 7, 2
FILES = 4
"""Of each phase."""
TOGETHER = 5
"""Stories that share a process: the last two of them join streams."""
COUNTING = 3
GROUPS = 10
JOBS = 4
"""Of one story that counts and one that joins: each has a batch in every process."""


def rescale(path: Path, counts: Sequence[str], joins: Sequence[str], seed: int, *, files: int = FILES) -> Found:
    """Three phases with a kill in each, somewhere."""
    rng = Random(seed)
    counting, joining = (
        {f"{kind}{n}": form for n, form in enumerate(forms)} for kind, forms in (("s", counts), ("j", joins))
    )
    stories = Stories(path, counting, rng, joins=joining)
    for tasks in (FIRST, THEN, rng.randint(1, 8)):
        stories.put(files)
        stories.run(tasks, f"{rng.choice(IN_BATCHES)}=kill:{rng.randint(1, files * len(stories.stories))}")
    return stories.end(rng.choice((FIRST, THEN)))


@pytest.mark.java
def test_a_kill_with_seven_tasks_and_then_two_go_on(tmp_path: Path, spark: SparkSession) -> None:
    stories = Stories(tmp_path, {"s0": "delta"}, Random(1), joins={"j0": "delta"})
    stories.put(2)
    assert stories.run(FIRST, "commit.after=kill:2")
    stories.put(2)
    found = stories.end(THEN, spark)
    assert found.is_clean, found
    assert found.kills == 1


@pytest.mark.slow
@pytest.mark.java
def test_seven_tasks_then_two_then_any_number_with_a_kill_in_each_phase(tmp_path: Path) -> None:
    found = rescale(tmp_path, ["delta"], ["delta"], 1, files=2)
    assert found.is_clean, found
    assert found.kills > 1


def test_what_is_compared_can_be_wrong() -> None:
    right = [(1, "a"), (2, "b")]
    assert compare(right, right, 1, is_first=True).is_clean
    assert compare(right[1:], right, 1, is_first=True) == Found(results=1, loss=1)
    assert compare([*right, right[0]], right, 1, is_first=True) == Found(results=3, dup=1)
    assert compare([(1, "b"), (2, "b")], right, 1, is_first=True) == Found(results=2, reorder=1)
    assert compare([(1, "b"), (2, "b")], right, 1, is_first=False) == Found(results=2, corrupt=1)
    assert compare([(1, None)], [(1, 2)], 2, is_first=False) == Found(results=1, loss=1, corrupt=1)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
@pytest.mark.java
def test_many_rescales_with_kills(tmp_path: Path, group: int) -> None:
    forms = [NAMES[(group + number) % len(NAMES)] for number in range(TOGETHER)]
    found = rescale(tmp_path, forms[:COUNTING], forms[COUNTING:], 2 + group)
    assert found.is_clean, found


@pytest.mark.slow
@pytest.mark.parametrize("form", NAMES)
@pytest.mark.java
def test_kills_at_every_step_one_after_the_other(tmp_path: Path, form: str) -> None:
    """Each kill but the first is in the restart after another one. That each step comes after each other one is shown
    in one process (tests/service/test_stop_pairs.py)."""
    rng = Random(form)
    stories = Stories(tmp_path, {"s": form}, rng, joins={"j": form})
    stories.put(1)
    for step in rng.sample(IN_RESTARTS, len(IN_RESTARTS)):
        stories.put(1)
        assert stories.run(rng.choice((FIRST, THEN, 4)), f"{step}=kill:{rng.randint(1, JOBS)}"), step
    found = stories.end(THEN)
    assert found.is_clean, found
    assert found.kills == len(IN_RESTARTS)
