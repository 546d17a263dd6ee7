"""Jobs with state are killed and go on with another number of tasks; DuckDB computes the same from the whole input.

All run on Spark in processes of their own, which are killed in every phase: with seven tasks, with two, and with any
number. `pytest -m slow -s tests/crash/test_kill_state.py` prints what was counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

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
@pytest.mark.parametrize("kind", ["counts", "joins"])
@pytest.mark.parametrize("step", IN_BATCHES)
@pytest.mark.java
def test_a_kill_at_each_step_and_a_second_one_during_the_restart(
    tmp_path: Path, form: str, kind: str, step: str
) -> None:
    """The second one is at another step for each of them, so that all are there for each format."""
    again = IN_RESTARTS[(IN_BATCHES.index(step) + 5 * NAMES.index(form)) % len(IN_RESTARTS)]
    counts, joins = ({"shop": form} if kind == each else {} for each in ("counts", "joins"))
    stories = Stories(tmp_path, counts, Random(step), joins=joins)
    stories.put(FILES)
    assert stories.run(2, f"{step}=kill:3")
    stories.put(1)
    assert stories.run(2, f"{again}=kill")
    found = stories.end(2)
    assert found.is_clean, found
