"""Listing, planning and looking, from a stream that makes trouble."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lading.errors import ConfigError, ListingError
from lading.model.batch import Limits
from lading.sources.kinesis.source import KinesisSource
from lading.testing.clock import ManualClock
from tests.sources.kinesis.support import Job, make_spec, row, shard
from tests.support.kinesis.fake import FakeKinesis

HOUR, ZERO = 3600.0, shard(0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def fake(clock: ManualClock) -> FakeKinesis:
    return FakeKinesis(clock)


def source(fake: FakeKinesis, **changes: object) -> KinesisSource:
    return KinesisSource(make_spec(**changes), fake.clock, fake)


# Listing.


def test_every_page_is_read_and_tokens_travel_alone(clock: ManualClock) -> None:
    fake = FakeKinesis(clock, shards=7)
    fake.page_size = 2
    assert set(source(fake).list_partitions().partitions) == set(fake.shards)
    assert [sorted(call) for call in fake.calls_of("list_shards")] == [
        ["MaxResults", "StreamName"],
        *[["MaxResults", "NextToken"]] * 3,
    ]


def test_a_listing_whose_token_expires_begins_anew(clock: ManualClock) -> None:
    fake = FakeKinesis(clock, shards=5)
    fake.page_size = 2
    fake.fail("list_shards", "ExpiredNextTokenException", after=2)
    assert len(source(fake).list_partitions().partitions) == 5


def test_a_listing_whose_tokens_always_expire_is_an_error(clock: ManualClock) -> None:
    fake = FakeKinesis(clock, shards=5)
    fake.page_size = 2
    fake.fail("list_shards", "ExpiredNextTokenException", times=100, MaxResults=1_000, NextToken="token-0")
    for number in range(1, 20):
        fake.fail("list_shards", "ExpiredNextTokenException", times=100, NextToken=f"token-{number}")
    with pytest.raises(ListingError, match="expired"):
        source(fake).list_partitions()


def test_a_page_that_fails_is_asked_for_again(clock: ManualClock) -> None:
    fake = FakeKinesis(clock, shards=5)
    fake.page_size = 2
    fake.fail("list_shards", "InternalFailure", after=1, times=2)
    fake.fail("list_shards", "LimitExceededException", after=1, times=2)
    assert len(source(fake).list_partitions().partitions) == 5


def test_a_page_that_fails_for_good_is_an_error_and_not_a_short_listing(clock: ManualClock) -> None:
    fake = FakeKinesis(clock, shards=5)
    fake.page_size = 2
    fake.fail("list_shards", "AccessDeniedException", after=1, times=9)
    with pytest.raises(ConfigError, match="refused the credentials"):
        source(fake).list_partitions()


@pytest.mark.parametrize("missing", [[1], [2], [1, 2]])
def test_a_listing_caught_in_a_reshard_is_made_again(fake: FakeKinesis, missing: list[int]) -> None:
    fake.split(ZERO)
    fake.hide(*[shard(number) for number in missing], listings=2)
    assert set(source(fake).list_partitions().partitions) == {shard(0), shard(1), shard(2)}
    assert len(fake.calls_of("list_shards")) == 3


def test_a_finished_shard_that_is_missing_from_a_listing_is_not_read_again(
    fake: FakeKinesis, clock: ManualClock
) -> None:
    fake.put(row("k", 0), shard=ZERO)
    fake.split(ZERO)
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    job.drain()
    fake.hide(ZERO, listings=2)
    fake.put(row("k", 1), shard=shard(1))
    job.crash()
    job.drain()
    job.drain()
    assert job.numbers == [0, 1]


def test_a_listing_that_stays_full_of_holes_is_an_error(fake: FakeKinesis) -> None:
    fake.split(ZERO)
    fake.hide(shard(2), listings=100)
    with pytest.raises(ListingError, match="reshard"):
        source(fake).list_partitions()


def test_a_child_whose_parent_still_looks_open_is_no_error(fake: FakeKinesis) -> None:
    fake.split(ZERO)
    fake.show_open(ZERO, listings=100)
    listing = source(fake).list_partitions()
    assert listing.partitions[shard(1)].parents == (ZERO,)


def test_a_parent_that_still_looks_open_is_read_to_its_end(fake: FakeKinesis, clock: ManualClock) -> None:
    fake.put(row("k", 0), shard=ZERO)
    fake.split(ZERO)
    fake.put(row("k", 1), shard=shard(1))
    fake.show_open(ZERO, listings=100)
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    job.drain()
    assert job.numbers == [0, 1]


def test_holes_do_not_matter_to_pinned_shards(fake: FakeKinesis) -> None:
    fake.split(ZERO)
    fake.hide(shard(2), listings=100)
    assert set(source(fake, shards=(shard(1),)).list_partitions().partitions) == {shard(1)}


# What is wrong is told at once.


def test_an_unknown_stream_is_told(fake: FakeKinesis) -> None:
    with pytest.raises(ConfigError, match=r"nope was not found.*kinesis_stream"):
        source(fake, stream="nope").check()


@pytest.mark.parametrize("code", ["AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException"])
def test_refused_credentials_are_told(fake: FakeKinesis, code: str) -> None:
    fake.fail("list_shards", code, times=9)
    with pytest.raises(ConfigError, match="refused the credentials"):
        source(fake).check()


def test_a_service_that_is_away_is_tried_again_and_then_told(fake: FakeKinesis) -> None:
    fake.fail("describe_stream_summary", "InternalFailure", times=3)
    source(fake).check()
    fake.fail("describe_stream_summary", "InternalFailure", times=100)
    with pytest.raises(Exception, match="did not answer"):
        source(fake).check()


# Opening.


@pytest.mark.parametrize("ahead", [timedelta(minutes=-3), timedelta(minutes=3), timedelta(0)])
def test_latest_skips_nothing_whichever_clock_is_wrong(fake: FakeKinesis, clock: ManualClock, ahead: timedelta) -> None:
    """Rows written after the opening are read, also if the local clock is three minutes fast or slow."""
    clock.sleep(HOUR)
    server = ManualClock(clock.now() + ahead)
    fake.clock = server
    fake.put(row("k", 0), shard=ZERO)
    job = Job(fake, clock)
    job.open("LATEST")
    job.crash()
    fake.put(row("k", 1), shard=ZERO)
    server.sleep(1.0)
    job.drain()
    fake.put(row("k", 2), shard=ZERO)
    job.drain()
    assert job.numbers == [1, 2]


def test_latest_is_resolved_once(fake: FakeKinesis, clock: ManualClock) -> None:
    clock.sleep(HOUR)
    job = Job(fake, clock)
    opened = job.open("LATEST")
    assert job.batch() == -1
    clock.sleep(60.0)
    fake.put(row("k", 0), shard=ZERO)
    clock.sleep(60.0)
    job.crash()
    job.drain()
    assert opened.partitions[ZERO].at.startswith("TIME 2026-01-01T01:00:00")
    assert job.numbers == [0]


def test_an_operator_moves_a_shard_by_the_same_words(fake: FakeKinesis) -> None:
    number = fake.put(row("k", 0), shard=ZERO)
    found = source(fake)
    assert found.resolve({ZERO: "TRIM_HORIZON"}) == {ZERO: "TRIM_HORIZON 2026-01-01T00:00:00.000+00:00"}
    assert found.resolve({ZERO: str(number)}) == {ZERO: f"AT {number}"}
    assert found.resolve({ZERO: "LATEST"}) == {ZERO: f"AFTER {number}"}
    with pytest.raises(ConfigError):
        found.resolve({ZERO: "17"})
    with pytest.raises(ConfigError):
        found.resolve({shard(9): "LATEST"})


# Planning.


def test_an_idle_stream_plans_nothing_and_costs_one_call_a_shard(clock: ManualClock) -> None:
    fake = FakeKinesis(clock, shards=3)
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    assert job.batch() == -1
    fake.calls.clear()
    for _ in range(5):
        assert job.batch() == -1
    assert len(fake.calls_of("get_records")) == 15
    assert fake.calls_of("get_shard_iterator") == []


def test_an_empty_stretch_is_crossed_without_a_batch(fake: FakeKinesis, clock: ManualClock) -> None:
    fake.put(row("k", 0), shard=ZERO)
    clock.sleep(HOUR)
    fake.empty_answers[ZERO] = 3
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    job.drain()
    assert job.numbers == [0]


def test_only_shards_with_something_new_are_planned(clock: ManualClock) -> None:
    fake = FakeKinesis(clock, shards=3)
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    fake.put(row("k", 0), shard=shard(1))
    assert [split.partition for split in job.plan().splits] == [shard(1)]


def test_a_closed_shard_with_nothing_left_is_planned_so_that_its_end_is_committed(
    fake: FakeKinesis, clock: ManualClock
) -> None:
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    assert job.batch() == -1
    fake.split(ZERO)
    assert job.batch() == 0
    assert job.state(0).finished
    assert job.batch() == -1


def test_the_limits_of_a_batch_hold_for_all_its_splits_together(clock: ManualClock) -> None:
    fake = FakeKinesis(clock, shards=4)
    for n in range(4):
        for m in range(50):
            fake.put(row("k", m), shard=shard(n))
    job = Job(fake, clock, limits=Limits(rows=10, seconds=9.0))
    job.open("TRIM_HORIZON")
    assert 0 < job.batch() <= 10
    job.limits = Limits(rows=2, seconds=9.0)
    job.ends.clear()
    for _ in range(2):
        assert 0 < job.batch() <= 2
    assert len({split.partition for split, _ in job.ends}) == 4
    size = len(row("k", 10))
    job.limits = Limits(rows=100_000, size_bytes=8 * size, seconds=9.0)
    assert 0 < job.batch() <= 12
    job.limits = Limits(rows=100_000, seconds=9.0)
    job.drain()
    assert len(job.rows) == 200


def test_a_throttled_look_is_planned_and_not_taken_for_idle(fake: FakeKinesis, clock: ManualClock) -> None:
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    fake.fail("get_records", "ProvisionedThroughputExceededException", times=4)
    assert [split.partition for split in job.plan().splits] == [ZERO]


# Looking.


def test_the_sight_shows_lag_shards_and_the_time_that_is_left(clock: ManualClock) -> None:
    fake = FakeKinesis(clock, shards=2)
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    fake.put(row("k", 0), shard=ZERO)
    clock.sleep(HOUR)
    fake.split(shard(1))
    sight = job.source.sight(job.positions)
    assert sight.lag == {shard(0): 3_600_000, shard(1): 0}
    assert sight.seconds_to_trim == 23 * HOUR
    assert dict(sight.facts) == {
        "openShardNum": 1,
        "closedShardNum": 1,
        "trackedShardNum": 2,
        "cachedMillisBehindLatestShardNum": 2,
        "totalMillisBehindLatest": 3_600_000,
        "maxMillisBehindLatest": 3_600_000,
    }
    job.drain()
    clock.sleep(30.0)
    sight = job.source.sight(job.positions)
    assert sight.lag == {shard(0): 0, shard(2): 0, shard(3): 0}
    assert sight.seconds_to_trim is None
    assert sight.open_partitions == (shard(0), shard(2), shard(3))
    assert sight.closed_partitions == (), "it was read to its end, and its children are being read"


def test_a_throttled_look_gives_a_lag_that_is_not_known(fake: FakeKinesis, clock: ManualClock) -> None:
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    fake.fail("get_records", "ProvisionedThroughputExceededException", times=100)
    assert job.source.sight(job.positions).lag == {ZERO: None}


def test_a_pinned_end_is_reached_though_the_stream_goes_on(clock: ManualClock, fake: FakeKinesis) -> None:
    fake.put(row("k", 0), shard=shard(0))
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    clock.sleep(5)
    is_reached = job.source.pin(job.positions)
    clock.sleep(5)
    fake.put(row("k", 1), shard=shard(0))
    assert not is_reached(job.positions)
    job.limits = replace(job.limits, rows=1)
    job.batch()
    assert (job.numbers, is_reached(job.positions)) == ([0], True)


def test_a_pinned_end_of_a_closed_shard_is_its_end_and_of_its_children_too(
    clock: ManualClock, fake: FakeKinesis
) -> None:
    fake.put(row("k", 0), shard=shard(0))
    fake.split(shard(0))
    clock.sleep(5)
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    is_reached = job.source.pin(job.positions)
    assert not is_reached(job.positions)
    job.batch()
    assert is_reached(job.positions), "the children are empty"
