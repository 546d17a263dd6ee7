"""The plan fits into its hour, and names what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.plan import LANES, MOST_MINUTES


@pytest.mark.parametrize("lane", LANES)
def test_a_lane_takes_less_than_an_hour_on_free_cores(lane: str) -> None:
    assert sum(step.minutes for step in LANES[lane]) < MOST_MINUTES


def test_every_step_has_a_name_of_its_own_and_runs_tests_that_are_there() -> None:
    steps = [step for lane in LANES.values() for step in lane]
    assert len({step.name for step in steps}) == len(steps)
    named = [word for step in steps for word in step.words if word.startswith("tests/")]
    assert len(named) > 8
    assert all(Path(word).exists() for word in named)
