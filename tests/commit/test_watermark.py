"""Event time: what a batch leaves for the next one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lading.commit.watermark import advance_watermark
from lading.model.batch import Report
from lading.model.job import WatermarkRule
from lading.model.positions import PartitionState, Positions, reset_event_times
from lading.model.tally import RowCounts

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RULE = WatermarkRule(delay_us=10, idle_s=60)
Times = dict[str, int | None]


def read(before: Positions, times: Times, *, after_s: float = 0, rule: WatermarkRule = RULE) -> Positions:
    """A batch in which these partitions had a row of that event time; None: a row that was not loaded."""
    reports = [
        Report(split=n, partition=name, start="0", end="1", rows=RowCounts(total=1, loaded=1), event_us=time)
        for n, (name, time) in enumerate(times.items())
    ]
    return advance_watermark(rule, before, before, reports, NOON + timedelta(seconds=after_s))


def partitions(*names: str) -> Positions:
    return Positions(partitions={name: PartitionState(at="0") for name in names})


def test_it_is_the_smallest_over_all_partitions_less_the_delay() -> None:
    assert read(partitions("a", "b"), {"a": 100, "b": 50}).watermark_us == 40


def test_a_partition_that_has_told_nothing_yet_holds_it() -> None:
    assert read(partitions("a", "b"), {"a": 100}).watermark_us is None
    assert read(partitions("a", "b"), {"a": 100, "b": None}).watermark_us is None


def test_a_partition_is_idle_only_after_the_timeout() -> None:
    known = read(partitions("a", "b"), {"a": 100, "b": 50})
    assert read(known, {"a": 200}, after_s=59).watermark_us == 40
    assert read(known, {"a": 200}, after_s=60).watermark_us == 190
    never = WatermarkRule(delay_us=10)
    assert read(known, {"a": 200}, after_s=10**6, rule=never).watermark_us == 40


def test_one_that_comes_back_does_not_pull_it_down() -> None:
    known = read(partitions("a", "b"), {"a": 100, "b": 50})
    gone = read(known, {"a": 200}, after_s=60)
    back = read(gone, {"b": 60}, after_s=61)
    assert (back.watermark_us, back.partitions["b"].event_us) == (190, 60)
    assert read(back, {"a": 300, "b": 250}, after_s=62).watermark_us == 240


def test_it_stays_when_all_are_idle() -> None:
    known = read(partitions("a", "b"), {"a": 100, "b": 50})
    assert read(known, {}, after_s=10**6).watermark_us == 40


def test_it_goes_on_without_rows_when_the_slow_one_becomes_idle() -> None:
    known = read(partitions("a", "b"), {"a": 100, "b": 50})
    later = read(known, {"a": 100}, after_s=30)
    assert read(later, {}, after_s=61).watermark_us == 90


def test_a_child_does_not_hold_it_before_its_parent_is_read() -> None:
    family = partitions("a", "b")
    family.partitions["b"] = PartitionState(at="", parents=("a",))  # type: ignore[index]
    assert read(family, {"a": 100}).watermark_us == 90


def test_finished_partitions_do_not_hold_it() -> None:
    ended = partitions("a", "b")
    ended.partitions["b"] = PartitionState(at="9", finished=True)  # type: ignore[index]
    assert read(ended, {"a": 100}).watermark_us == 90


def test_a_partition_that_is_behind_and_had_no_rows_is_not_idle() -> None:
    known = read(partitions("a", "b"), {"a": 100, "b": 50})
    behind = Report(split=0, partition="b", start="1", end="1", lag_ms=5000)
    far = advance_watermark(RULE, known, known, [behind], NOON + timedelta(seconds=90))
    assert far.watermark_us == 40


@pytest.mark.parametrize(
    "report",
    [
        Report(split=0, partition="b", start="1", end="9", rows=RowCounts(total=8, error=8)),
        Report(split=0, partition="b", start="1", end="9", rows=RowCounts(total=8, unselected=8)),
        Report(split=0, partition="b", start="1", end="9", rows=RowCounts(total=8, loaded=8), ahead=8),
        Report(split=0, partition="b", start="1", end="9"),  # Only markers of transactions.
    ],
)
def test_a_partition_whose_rows_tell_no_event_time_is_idle_after_the_timeout(report: Report) -> None:
    times: Times = {"a": 100}
    for known in (read(partitions("a", "b"), times), read(partitions("a", "b"), {**times, "b": 50})):
        own = Report(split=1, partition="a", start="1", end="2", rows=RowCounts(total=1, loaded=1), event_us=200)
        for after_s, watermark in ((59, known.watermark_us), (60, 190)):
            now = NOON + timedelta(seconds=after_s)
            known = advance_watermark(RULE, known, known, [report, own], now)
            assert known.watermark_us == watermark
        # Its next row with a time is waited for again, and pulls nothing down.
        back = read(known, {"b": 195}, after_s=61)
        assert (back.watermark_us, read(back, {"a": 300}, after_s=62).watermark_us) == (190, 190)
        assert read(back, {"a": 300, "b": 290}, after_s=63).watermark_us == 280


def test_a_partition_that_brings_late_rows_is_waited_for() -> None:
    known = read(partitions("a", "b"), {"a": 100, "b": 50})
    late = Report(split=0, partition="b", start="1", end="2", rows=RowCounts(total=1, late=1))
    assert advance_watermark(RULE, known, known, [late], NOON + timedelta(seconds=90)).watermark_us == 40


def test_a_job_without_event_time_keeps_nothing() -> None:
    before = partitions("a")
    assert advance_watermark(None, before, before, [], NOON) is before


def test_an_operators_move_begins_again() -> None:
    known = read(partitions("a", "b"), {"a": 100, "b": 50})
    moved = reset_event_times(known, ["b"])
    assert (moved.watermark_us, moved.partitions["a"].event_us, moved.partitions["b"].event_us) == (None, 100, None)
    assert read(moved, {"b": 5}, after_s=1).watermark_us == -5
