"""How many windows are open, as the page of a job says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lading.model.load import WindowSpec
from lading.model.state import StateRef
from lading.status.windows import count_open_windows
from tests.model.samples import FULL_BILL

MINUTE = 60_000_000
WINDOW = WindowSpec(time="at", size_us=MINUTE, slide_us=MINUTE)


def open_windows(window: WindowSpec, next_us: int | None, *latest: int | None) -> int | None:
    kept = StateRef(manifest="m", digest="", files=1, rows=9, size_bytes=4, next_us=next_us)
    state = next(iter(FULL_BILL.positions.partitions.values()))
    partitions = {str(n): replace(state, event_us=each) for n, each in enumerate(latest)}
    bill = replace(FULL_BILL, state=kept, positions=replace(FULL_BILL.positions, partitions=partitions))
    return count_open_windows(window, bill)


@pytest.mark.parametrize(
    ("latest", "number"),
    [((10 * MINUTE,), 1), ((10 * MINUTE + 59, 11 * MINUTE - 1), 1), ((11 * MINUTE, None), 2), ((0, 15 * MINUTE), 6)],
)
def test_from_the_next_that_is_due_to_that_of_the_latest_row(latest: tuple[int | None, ...], number: int) -> None:
    assert open_windows(WINDOW, 11 * MINUTE, *latest) == number


def test_windows_that_overlap_are_all_counted() -> None:
    sliding = replace(WINDOW, size_us=10 * MINUTE)
    assert open_windows(sliding, 11 * MINUTE, 10 * MINUTE) == 10


def test_a_row_far_ahead_alone_is_in_a_window() -> None:
    assert open_windows(WINDOW, 1_000 * MINUTE, 10 * MINUTE) == 1


def test_without_a_row_that_tells_a_time_it_is_not_known() -> None:
    assert open_windows(WINDOW, 11 * MINUTE, None) is None


def test_none_are_open_when_nothing_is_due() -> None:
    assert open_windows(WINDOW, None, 10 * MINUTE) == 0
    assert count_open_windows(WINDOW, replace(FULL_BILL, state=None)) == 0


def test_sessions_are_at_most_as_many_as_their_parts() -> None:
    assert open_windows(replace(WINDOW, is_session=True), 11 * MINUTE, 10 * MINUTE) == 9
