"""A clock that is set by hours, forwards or back, makes no partition idle, and none forgotten."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from lading.clock import Moment, SystemClock
from lading.commit.watermark import advance_watermark
from lading.model.batch import BatchPlan, Limits, Report
from lading.model.job import WatermarkRule
from lading.model.positions import ListedPartition, Listing, PartitionState, Positions
from lading.model.tally import RowCounts
from lading.plan.planner import Planner
from lading.testing.clock import ManualClock
from tests.commit.test_narrow import Topic

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RULE = WatermarkRule(delay_us=10, idle_s=60)


class SetClock(ManualClock):
    """Somebody can set it; what is steady goes on."""

    def __init__(self) -> None:
        super().__init__(NOON)
        self.jump = timedelta()

    def now(self) -> datetime:
        return super().now() + self.jump


class Reading:
    """Batches of two partitions, one after the other, as a coordinator has them."""

    def __init__(self) -> None:
        self.clock, self.topic = SetClock(), Topic(p0=1000, p1=1000)
        self.planner = Planner(self.topic, self.clock)
        self.positions = self.topic.open("")

    def batch(self, **times: int) -> int | None:
        """Partitions had a row of that event time. The watermark after it."""
        self.clock.sleep(1)
        now = self.clock.now()
        plan: BatchPlan = self.planner.plan(self.positions, Limits())
        reports = [
            Report(split=n, partition=name[1:], start="0", end="1", rows=RowCounts(total=1, loaded=1), event_us=time)
            for n, (name, time) in enumerate(times.items())
        ]
        self.positions = advance_watermark(RULE, self.positions, plan.positions, reports, now)
        return self.positions.watermark_us

    def look(self) -> None:
        """An idle job plans, and commits nothing."""
        self.planner.plan(self.positions, Limits())

    def wait(self, seconds: float) -> None:
        self.clock.sleep(seconds)


@pytest.mark.parametrize("hours", [7, -7])
def test_a_partition_is_idle_after_its_time_and_not_because_the_clock_was_set(hours: int) -> None:
    reading = Reading()
    assert reading.batch(p0=100, p1=50) == 40
    reading.clock.jump = timedelta(hours=hours)
    reading.look()
    reading.look()
    assert reading.batch(p0=200) == 40, "the other one had a row a second ago"
    reading.clock.jump = timedelta()
    assert reading.batch(p0=300) == 40
    reading.clock.jump = timedelta(hours=hours)
    reading.wait(60)
    assert reading.batch(p0=400) == 390, "now it is idle"


def test_a_clock_that_was_set_back_while_nobody_looked_holds_the_watermark_for_no_longer_than_the_timeout() -> None:
    reading = Reading()
    reading.clock.jump = timedelta(hours=7)
    assert reading.batch(p0=100, p1=50) == 40
    reading.clock.jump = timedelta()
    reading.planner = Planner(reading.topic, reading.clock)
    assert reading.batch(p0=200) == 40
    reading.wait(60)
    assert reading.batch(p0=300) == 290


def test_a_finished_partition_is_not_forgotten_because_the_clock_was_set() -> None:
    clock = SetClock()

    class Shards(Topic):
        names: tuple[str, ...] = ("0", "1")

        def list_partitions(self) -> Listing:
            return Listing(partitions={name: ListedPartition() for name in self.names}, can_shrink=True)

    shards = Shards(p0=0, p1=0)
    planner = Planner(shards, clock)
    known = Positions(partitions={"0": PartitionState(at="0"), "1": PartitionState(at="9", finished=True)})
    shards.names = ("0",)
    known = planner.plan(known, Limits()).positions
    clock.jump = timedelta(hours=7)
    known = planner.plan(known, Limits()).positions
    shards.names = ("0", "1")  # An old listing: it was never gone for an hour.
    assert planner.plan(known, Limits()).positions.partitions["1"].finished


def test_a_clock_that_is_kept_right_was_not_set() -> None:
    clock = SetClock()
    before = Moment.of(clock)
    clock.sleep(100_000)
    clock.jump = timedelta(seconds=59)
    assert before.jump_to(Moment.of(clock)) == timedelta()
    clock.jump = timedelta(hours=-1)
    assert before.jump_to(Moment.of(clock)) == timedelta(hours=-1)


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no such clock")
def test_time_passes_while_the_machine_sleeps() -> None:
    before, told = time.clock_gettime(time.CLOCK_BOOTTIME), SystemClock().passed_s()
    after = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= told <= after
    clock = ManualClock()
    passed_s, steady_s = clock.passed_s(), clock.monotonic_s()
    clock.suspend(61)
    assert (clock.passed_s() - passed_s, clock.monotonic_s() - steady_s) == (61, 0)
