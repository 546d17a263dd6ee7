"""Rates and plots: every commit counts once, none is invented."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lading.model.tally import RowCounts, Tally
from lading.status.lag import Lag, LagUnit
from lading.status.rates import Beat, LagPoint, fixed_span, measure_rates, plot

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
AGES = st.integers(min_value=-100, max_value=1000)


def beat(age_s: float, rows: int = 10) -> Beat:
    tally = Tally(rows=RowCounts(total=rows, loaded=rows), received_bytes=3 * rows, data_files=1, commits=1)
    return Beat(at=NOW - timedelta(seconds=age_s), tally=tally, seconds=2.0)


def test_a_rate_is_over_the_window() -> None:
    rates = measure_rates([beat(10), beat(50), beat(70)], now=NOW, window_s=60)
    assert (rates.rows_per_s, rates.bytes_per_s, rates.batches) == (20 / 60, 1.0, 2)


def test_a_young_job_is_measured_over_its_life() -> None:
    rates = measure_rates([beat(1)], now=NOW, window_s=300, since=NOW - timedelta(seconds=5))
    assert rates.rows_per_s == 2.0
    newborn = measure_rates([], now=NOW, window_s=300, since=NOW)
    assert (newborn.rows_per_s, newborn.window_s) == (0.0, 1.0)


@given(ages=st.lists(AGES, max_size=40), points=st.integers(min_value=1, max_value=50))
def test_every_commit_of_the_time_is_in_exactly_one_point(ages: list[int], points: int) -> None:
    start = NOW - timedelta(seconds=600)
    shown = plot([beat(age) for age in ages], [], start=start, end=NOW, points=points)
    inside = [age for age in ages if 0 < age <= 600]
    assert len(shown) == points
    assert sum(point.batches for point in shown) == len(inside)
    assert round(sum(point.rows_per_s for point in shown) * 600 / points) == 10 * len(inside)
    assert all((point.batch_s == 2.0) == bool(point.batches) for point in shown)


@given(
    ages=st.lists(st.integers(min_value=0, max_value=600), max_size=20),
    later_s=st.integers(min_value=0, max_value=100),
    minutes=st.sampled_from([1, 15, 60, 1440]),
)
def test_a_bar_that_was_drawn_stays_as_it_is(ages: list[int], later_s: int, minutes: int) -> None:
    span, beats = timedelta(minutes=minutes), [beat(age) for age in ages]

    def drawn(now: datetime) -> dict[datetime, tuple[int, float]]:
        start, end = fixed_span(now, span, 6)
        assert start <= now - span + span / 6
        assert now < end
        shown = plot(beats, [], start=start, end=end, points=6)
        return {point.at: (point.batches, point.rows_per_s) for point in shown}

    before, after = drawn(NOW), drawn(NOW + timedelta(seconds=later_s))
    both = before.keys() & after.keys()
    assert {at: before[at] for at in both} == {at: after[at] for at in both}
    if timedelta(seconds=later_s) < span - span / 6:
        assert both


def test_the_last_lag_of_an_interval_is_shown() -> None:
    lags = [LagPoint(at=NOW - timedelta(seconds=age), behind=age) for age in (1, 5, 15)]
    shown = plot([], lags, start=NOW - timedelta(seconds=30), end=NOW, points=3)
    assert [point.lag for point in shown] == [None, 15, 1]


def test_lags_add_up_but_times_do_not() -> None:
    parts = {"a": 5, "b": None, "c": 7}
    assert Lag(unit=LagUnit.RECORDS, partitions=parts, at=NOW).behind == 12
    assert Lag(unit=LagUnit.MILLISECONDS, partitions=parts, at=NOW).behind == 7
    assert Lag(unit=LagUnit.FILES, partitions={"a": None}, at=NOW).behind is None
    assert Lag(unit=LagUnit.FILES, at=NOW).behind == 0
