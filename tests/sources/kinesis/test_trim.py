"""Rows that are gone are told, and an idle shard is not one of them."""

from __future__ import annotations

import pytest

from lading.errors import SourceError, TrimmedError
from lading.model.batch import Limits
from lading.testing.clock import ManualClock
from tests.sources.kinesis.support import Job, row, shard
from tests.support.kinesis.aggregate import aggregate
from tests.support.kinesis.fake import FakeKinesis

HOUR, ZERO = 3600.0, shard(0)
FORMS = pytest.mark.parametrize("form", ["horizon", "stuck", "refused"])


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def fake(clock: ManualClock) -> FakeKinesis:
    return FakeKinesis(clock)


def read_some(fake: FakeKinesis, clock: ManualClock, count: int = 2) -> Job:
    for n in range(count):
        fake.put(row("k", n), shard=ZERO)
    job = Job(fake, clock)
    job.open("TRIM_HORIZON")
    job.drain()
    assert job.numbers == list(range(count))
    return job


@FORMS
def test_rows_that_were_trimmed_unread_stop_the_job_in_every_form(
    fake: FakeKinesis, clock: ManualClock, form: str
) -> None:
    job = read_some(fake, clock)
    clock.sleep(HOUR)
    fake.put(row("k", 2), shard=ZERO)
    clock.sleep(25 * HOUR)
    fake.put(row("k", 3), shard=ZERO)
    fake.trimmed_as = form
    job.crash()
    with pytest.raises(TrimmedError) as told:
        job.plan()
    assert told.value.facts["partition"] == ZERO
    assert told.value.facts["at"] == job.state(0).at
    assert told.value.facts["horizon"].startswith("TRIM_HORIZON 2026-01-02T")
    with pytest.raises(TrimmedError):
        job.plan()


@FORMS
def test_a_job_that_may_go_on_reads_behind_the_gap_and_writes_it_down(
    fake: FakeKinesis, clock: ManualClock, form: str
) -> None:
    job = read_some(fake, clock)
    stood = job.state(0).at
    clock.sleep(HOUR)
    fake.put(row("k", 2), shard=ZERO)
    clock.sleep(25 * HOUR)
    fake.put(row("k", 3), shard=ZERO)
    fake.trimmed_as, job.on_data_loss = form, "CONTINUE"
    job.crash()
    job.drain()
    assert job.numbers == [0, 1, 3]
    [gap] = job.gaps
    assert (gap.partition, gap.start) == (ZERO, stood)
    assert gap.end.startswith("TRIM_HORIZON 2026-01-02T")


@FORMS
def test_a_shard_that_was_idle_for_days_while_the_job_ran_is_not_trimmed(
    fake: FakeKinesis, clock: ManualClock, form: str
) -> None:
    job = read_some(fake, clock)
    fake.trimmed_as = form
    committed = 0
    for _ in range(72):
        clock.sleep(HOUR)
        committed += job.batch() >= 0
        job.crash()
    assert 8 <= committed <= 14
    fake.put(row("k", 2), shard=ZERO)
    clock.sleep(HOUR)
    job.crash()
    job.drain()
    assert job.numbers == [0, 1, 2]


def test_an_idle_shard_is_not_trimmed_when_the_job_slept_too(fake: FakeKinesis, clock: ManualClock) -> None:
    job = read_some(fake, clock)
    clock.sleep(100 * HOUR)
    job.crash()
    job.drain()
    fake.put(row("k", 2), shard=ZERO)
    job.drain()
    assert job.numbers == [0, 1, 2]


def test_a_position_that_is_still_kept_is_not_trimmed_however_old_it_is(fake: FakeKinesis, clock: ManualClock) -> None:
    job = read_some(fake, clock)
    fake.put(row("k", 2), shard=ZERO)
    fake.trims = False
    clock.sleep(100 * HOUR)
    job.crash()
    job.drain()
    assert job.numbers == [0, 1, 2]


def test_a_retention_that_is_made_shorter_trims_almost_at_once(fake: FakeKinesis, clock: ManualClock) -> None:
    job = read_some(fake, clock)
    clock.sleep(HOUR)
    fake.put(row("k", 2), shard=ZERO)
    clock.sleep(5 * HOUR)
    fake.put(row("k", 3), shard=ZERO)
    fake.retention_hours = 2
    with pytest.raises(TrimmedError, match="kept for 2 h"):
        job.plan()


def test_a_start_at_a_time_that_is_trimmed_before_it_is_read_stops(fake: FakeKinesis, clock: ManualClock) -> None:
    job = Job(fake, clock)
    clock.sleep(1.0)
    job.open("LATEST")
    fake.put(row("k", 0), shard=ZERO)
    clock.sleep(30 * HOUR)
    fake.put(row("k", 1), shard=ZERO)
    with pytest.raises(TrimmedError):
        job.plan()


def test_the_rest_of_an_aggregate_that_is_gone_stops(fake: FakeKinesis, clock: ManualClock) -> None:
    fake.put(aggregate([("a", row("a", n)) for n in range(4)]), shard=ZERO)
    job = Job(fake, clock, limits=Limits(rows=2, seconds=9.0))
    job.open("TRIM_HORIZON")
    assert job.batch() == 2
    clock.sleep(12 * HOUR)
    fake.put(row("k", 9), shard=ZERO)
    clock.sleep(13 * HOUR)
    with pytest.raises(TrimmedError):
        job.plan()


def test_a_child_that_was_never_read_and_is_older_than_the_retention_stops(
    fake: FakeKinesis, clock: ManualClock
) -> None:
    job = read_some(fake, clock)
    fake.split(ZERO)
    clock.sleep(HOUR)
    job.batch()
    assert job.state(0).finished
    fake.put(row("k", 2), shard=shard(1))
    clock.sleep(25 * HOUR)
    fake.put(row("k", 3), shard=shard(1))
    with pytest.raises(TrimmedError, match="never read"):
        job.plan()


def test_a_child_that_was_never_read_and_never_written_goes_on(fake: FakeKinesis, clock: ManualClock) -> None:
    job = read_some(fake, clock)
    fake.split(ZERO)
    job.batch()
    clock.sleep(25 * HOUR)
    job.drain()
    fake.put(row("k", 2), shard=shard(1))
    job.drain()
    assert job.numbers == [0, 1, 2]


def test_a_closed_shard_that_lost_all_it_had_is_not_taken_for_finished(fake: FakeKinesis, clock: ManualClock) -> None:
    job = read_some(fake, clock)
    fake.put(row("k", 2), shard=ZERO)
    clock.sleep(23 * HOUR)
    fake.split(ZERO)
    clock.sleep(2 * HOUR)
    with pytest.raises(TrimmedError):
        job.plan()
    job.on_data_loss = "CONTINUE"
    job.crash()
    job.drain()
    assert job.state(0).finished
    assert len(job.gaps) == 1


def test_a_shard_that_expired_unread_is_lost(fake: FakeKinesis, clock: ManualClock) -> None:
    job = read_some(fake, clock)
    fake.split(ZERO)
    clock.sleep(25 * HOUR)
    with pytest.raises(TrimmedError):
        job.plan()


def test_a_stream_that_was_made_again_is_another(fake: FakeKinesis, clock: ManualClock) -> None:
    job = read_some(fake, clock)
    clock.sleep(HOUR)
    fake.recreate(shards=2)
    with pytest.raises(SourceError):
        job.plan()


def test_a_shard_that_is_read_just_before_it_is_trimmed_is_read_with_care(
    fake: FakeKinesis, clock: ManualClock
) -> None:
    job = read_some(fake, clock)
    fake.put(row("k", 2), shard=ZERO)
    clock.sleep(24 * HOUR - 300.0)
    [split] = job.plan().splits
    assert '"verify":true' in split.payload
    job.drain()
    assert job.numbers == [0, 1, 2]


@FORMS
def test_retention_that_was_lowered_and_raised_while_the_job_was_paused_is_noticed(
    fake: FakeKinesis, clock: ManualClock, form: str
) -> None:
    fake.set_retention(168)
    job = read_some(fake, clock)
    for n in range(2, 50):
        clock.sleep(HOUR)
        fake.put(row("k", n), shard=ZERO)
    fake.set_retention(24)
    clock.sleep(600)
    fake.set_retention(168)
    fake.trimmed_as = form
    job.crash()
    with pytest.raises(TrimmedError, match="lowered and raised again"):
        job.plan()
    assert job.numbers == [0, 1]


def test_behind_a_dip_of_the_retention_a_job_that_may_go_on_writes_the_gap_down(
    fake: FakeKinesis, clock: ManualClock
) -> None:
    fake.set_retention(168)
    job = read_some(fake, clock)
    for n in range(2, 50):
        clock.sleep(HOUR)
        fake.put(row("k", n), shard=ZERO)
    fake.set_retention(24)
    fake.set_retention(168)
    job.on_data_loss = "CONTINUE"
    job.crash()
    job.drain()
    assert (job.numbers[:3], job.numbers[-1], len(job.gaps)) == ([0, 1, 25], 49, 1)


def test_a_dip_that_took_everything_is_noticed_also_in_a_shard_that_is_empty_since(
    fake: FakeKinesis, clock: ManualClock
) -> None:
    fake.set_retention(168)
    job = read_some(fake, clock)
    clock.sleep(HOUR)
    fake.put(row("k", 2), shard=ZERO)
    clock.sleep(30 * HOUR)
    fake.set_retention(24)
    fake.set_retention(168)
    job.crash()
    with pytest.raises(TrimmedError, match="lowered and raised again"):
        job.plan()


def test_a_dip_while_the_job_is_running_is_noticed_behind_a_record_that_was_old_itself(
    fake: FakeKinesis, clock: ManualClock
) -> None:
    """The record before the position has passed the retention; that the stream was idle was seen since."""
    fake.set_retention(48)
    job = read_some(fake, clock)
    for _ in range(6):
        clock.sleep(10 * HOUR)
        job.batch()
    fake.put(row("k", 2), shard=ZERO)
    clock.sleep(30 * HOUR)
    fake.set_retention(24)
    job.source.list_partitions()
    job.source.plan({}, Limits())
    fake.set_retention(48)
    fake.put(row("k", 3), shard=ZERO)
    with pytest.raises(TrimmedError):
        job.plan()


def test_raising_the_retention_stops_nothing(fake: FakeKinesis, clock: ManualClock) -> None:
    job = read_some(fake, clock)
    fake.set_retention(168)
    clock.sleep(HOUR)
    fake.put(row("k", 2), shard=ZERO)
    job.crash()
    job.drain()
    assert job.numbers == [0, 1, 2]


def test_an_idle_shard_is_asked_for_its_last_record_once(fake: FakeKinesis, clock: ManualClock) -> None:
    job = read_some(fake, clock)
    job.crash()
    fake.calls.clear()
    for _ in range(3):
        clock.sleep(10)
        job.plan()
    asked = [arguments for method, arguments in fake.calls if method == "get_shard_iterator"]
    assert len([1 for each in asked if each["ShardIteratorType"] == "AT_SEQUENCE_NUMBER"]) == 1
