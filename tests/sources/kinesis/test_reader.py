"""Reading splits from a stream that makes trouble."""

from __future__ import annotations

import json
import pickle
import threading
from typing import Any

import pyarrow as pa
import pytest

from lading.clock import SystemClock
from lading.errors import ConfigError, StageError
from lading.model.batch import Limits
from lading.model.rows import SplitEnd
from lading.sources.kinesis import fetcher
from lading.sources.kinesis.position import after_sequence, at_sequence, render_position
from lading.sources.kinesis.reader import output_schema, read_splits
from lading.sources.kinesis.spec import Kpl, Pace
from lading.testing.clock import ManualClock
from tests.sources.kinesis.support import LIMITS, make_spec, read_all, read_one, row, shard, split_of
from tests.support.kinesis.aggregate import aggregate
from tests.support.kinesis.fake import FakeKinesis

ZERO = shard(0)


@pytest.fixture
def fake() -> FakeKinesis:
    return FakeKinesis(ManualClock())


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [int(row["n"]) for row in rows]


def put(fake: FakeKinesis, count: int, *, first: int = 0, shard: str = ZERO) -> list[int]:
    return [fake.put(row("k", first + n), shard=shard) for n in range(count)]


def test_rows_come_with_their_metadata_and_the_end_stands_behind_them(fake: FakeKinesis) -> None:
    sequences = put(fake, 3)
    rows, end = read_one(make_spec(), split_of(ZERO, "TRIM_HORIZON"), fake)
    assert numbers(rows) == [0, 1, 2]
    assert [row["_sequence"] for row in rows] == [str(number) for number in sequences]
    assert {row["_shard"] for row in rows} == {ZERO}
    assert {row["_partition_key"] for row in rows} == {"k"}
    assert {row["_sub_sequence"] for row in rows} == {0}
    assert {row["_arrival"] for row in rows} == {fake.clock.now()}
    assert rows[0]["__file"] == f"{ZERO}:{sequences[0]}"
    assert end.end == render_position(after_sequence(sequences[-1]))
    assert (end.finished, end.lag_ms, end.rows, end.skipped) == (False, 0, 3, 0)
    assert end.marks["arrival"].startswith("2026-01-01T00:00:00")
    assert end.marks["current"] >= end.marks["arrival"]
    assert end.received_bytes == sum(len(row("k", n)) for n in range(3))


def test_the_schema_has_columns_wanted_metadata_and_hidden_columns() -> None:
    hidden = ["__file", "__row", "__raw", "__error"]
    assert output_schema(make_spec(meta=("_arrival", "_shard"))).names == ["key", "n", "_shard", "_arrival", *hidden]


def test_the_spec_pickles_and_shows_no_secret() -> None:
    from lading.sources.kinesis.spec import Credentials

    spec = make_spec(credentials=Credentials(access_key="AKIA", secret_key="hush", session_token="sh", external_id="x"))
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert "hush" not in repr(spec)
    assert "AKIA" not in repr(spec)


def test_an_empty_open_shard_ends_where_it_began(fake: FakeKinesis) -> None:
    rows, end = read_one(make_spec(), split_of(ZERO, "TRIM_HORIZON"), fake)
    assert (rows, end.end, end.finished, end.lag_ms) == ([], "TRIM_HORIZON", False, 0)


def test_an_empty_closed_shard_is_finished_with_no_rows(fake: FakeKinesis) -> None:
    fake.split(ZERO)
    rows, end = read_one(make_spec(), split_of(ZERO, ""), fake)
    assert (rows, end.end, end.finished, end.lag_ms) == ([], "", True, 0)


def test_a_closed_shard_is_finished_by_the_answer_that_brings_its_last_rows(fake: FakeKinesis) -> None:
    put(fake, 3)
    fake.split(ZERO)
    rows, end = read_one(make_spec(), split_of(ZERO, ""), fake)
    assert (numbers(rows), end.finished, end.lag_ms) == ([0, 1, 2], True, 0)


def test_a_closed_shard_is_not_finished_while_a_limit_keeps_rows_back(fake: FakeKinesis) -> None:
    put(fake, 3)
    fake.split(ZERO)
    spec = make_spec()
    rows, end = read_one(spec, split_of(ZERO, "", limits=Limits(rows=2, seconds=9.0)), fake)
    assert (numbers(rows), end.finished) == ([0, 1], False)
    rows, end = read_one(spec, split_of(ZERO, end.end), fake)
    assert (numbers(rows), end.finished) == ([2], True)


def test_the_answer_that_ends_a_shard_does_not_finish_it_when_it_is_cut(fake: FakeKinesis) -> None:
    put(fake, 3)
    fake.split(ZERO)
    rows, end = read_one(make_spec(), split_of(ZERO, "", limits=Limits(size_bytes=1, seconds=9.0)), fake)
    assert (numbers(rows), end.finished) == ([0], False)
    assert end.lag_ms
    rows, end = read_one(make_spec(), split_of(ZERO, end.end), fake)
    assert (numbers(rows), end.finished) == ([1, 2], True)


def test_a_limit_of_bytes_cuts_in_the_middle_of_an_answer(fake: FakeKinesis) -> None:
    put(fake, 10)
    size = len(row("k", 0))
    spec, at, seen = make_spec(), "TRIM_HORIZON", list[int]()
    for _ in range(5):
        limits = Limits(rows=100, size_bytes=2 * size, seconds=9.0)
        rows, end = read_one(spec, split_of(ZERO, at, limits=limits), fake)
        assert len(rows) == 2
        seen, at = seen + numbers(rows), end.end
    assert seen == list(range(10))


def test_a_cut_answer_leaves_a_lag(fake: FakeKinesis) -> None:
    put(fake, 2)
    _, end = read_one(make_spec(), split_of(ZERO, "", limits=Limits(size_bytes=1, seconds=9.0)), fake)
    assert end.rows == 1
    assert end.lag_ms
    assert "current" not in end.marks


def test_empty_answers_far_behind_are_not_the_end(fake: FakeKinesis) -> None:
    put(fake, 2)
    fake.clock.sleep(3600.0)
    fake.empty_answers[ZERO] = 7
    rows, _ = read_one(make_spec(), split_of(ZERO, "TRIM_HORIZON"), fake)
    assert numbers(rows) == [0, 1]


def test_throttling_is_waited_out_and_takes_no_new_iterator(fake: FakeKinesis) -> None:
    put(fake, 5)
    fake.fail("get_records", "ProvisionedThroughputExceededException", times=3)
    rows, _ = read_one(make_spec(), split_of(ZERO, "TRIM_HORIZON"), fake)
    assert numbers(rows) == [0, 1, 2, 3, 4]
    assert len(fake.calls_of("get_shard_iterator")) == 1


def test_throttling_until_the_time_is_up_moves_nothing(fake: FakeKinesis) -> None:
    put(fake, 5)
    fake.fail("get_records", "ProvisionedThroughputExceededException", times=10_000)
    split = split_of(ZERO, "TRIM_HORIZON", limits=Limits(seconds=0.3))
    rows, end = read_one(make_spec(), split, fake)
    assert (rows, end.end, end.finished, end.lag_ms) == ([], "TRIM_HORIZON", False, None)
    assert "current" not in end.marks


def test_an_answer_of_ten_megabytes_throttles_the_next_and_nothing_is_lost(fake: FakeKinesis) -> None:
    fake.throttle_after_bytes = 2 * 1024 * 1024
    for n in range(5):
        fake.put(json.dumps({"key": "k", "n": n, "pad": "x" * (3 * 1024 * 1024)}).encode(), shard=ZERO)
    rows, _ = read_one(make_spec(), split_of(ZERO, "TRIM_HORIZON"), fake)
    assert numbers(rows) == [0, 1, 2, 3, 4]


def test_an_expired_iterator_goes_on_after_the_last_record_that_was_handed_on(fake: FakeKinesis) -> None:
    put(fake, 6)
    fake.fail("get_records", "ExpiredIteratorException", after=2)
    rows, _ = read_one(make_spec(max_records=2), split_of(ZERO, "TRIM_HORIZON"), fake)
    assert numbers(rows) == [0, 1, 2, 3, 4, 5]
    asked = [call["ShardIteratorType"] for call in fake.calls_of("get_shard_iterator")]
    assert asked == ["TRIM_HORIZON", "AFTER_SEQUENCE_NUMBER"]


def test_an_iterator_that_expires_before_anything_was_read_starts_where_it_started(fake: FakeKinesis) -> None:
    put(fake, 2)
    fake.fail("get_records", "ExpiredIteratorException")
    split = split_of(ZERO, "TIME 2025-12-31T23:00:00.000+00:00")
    rows, _ = read_one(make_spec(), split, fake)
    assert numbers(rows) == [0, 1]
    assert {call["ShardIteratorType"] for call in fake.calls_of("get_shard_iterator")} == {"AT_TIMESTAMP"}


def test_passing_failures_are_tried_again_and_others_are_told(fake: FakeKinesis) -> None:
    put(fake, 2)
    fake.fail("get_records", "InternalFailure", times=2)
    assert numbers(read_one(make_spec(), split_of(ZERO, ""), fake)[0]) == [0, 1]
    fake.fail("get_records", "AccessDeniedException")
    with pytest.raises(ConfigError, match="refused the credentials"):
        read_one(make_spec(), split_of(ZERO, ""), fake)


def test_a_position_that_is_refused_is_planned_again(fake: FakeKinesis) -> None:
    with pytest.raises(StageError, match="cannot be read on"):
        read_one(make_spec(), split_of(ZERO, render_position(at_sequence(17))), fake)


def test_a_shard_that_is_gone_is_an_error_and_never_an_end(fake: FakeKinesis) -> None:
    with pytest.raises(StageError):
        read_one(make_spec(), split_of(shard(9), ""), fake)


def test_records_of_white_space_are_skipped_and_counted(fake: FakeKinesis) -> None:
    for data in (row("k", 0), b" \n ", b"\t"):
        fake.put(data, shard=shard(0))
    rows, end = read_one(make_spec(), split_of(ZERO, ""), fake)
    assert (numbers(rows), end.rows, end.skipped) == ([0], 1, 2)


def test_empty_records_are_skipped_and_counted(fake: FakeKinesis) -> None:
    put(fake, 1)
    fake.put(b"", shard=ZERO)
    last = fake.put(b"", shard=ZERO)
    rows, end = read_one(make_spec(), split_of(ZERO, ""), fake)
    assert (numbers(rows), end.rows, end.skipped) == ([0], 1, 2)
    assert end.end == render_position(after_sequence(last))


def test_bad_records_are_rows_with_an_error(fake: FakeKinesis) -> None:
    fake.put(b"{not json", shard=ZERO)
    rows, end = read_one(make_spec(), split_of(ZERO, ""), fake)
    assert end.rows == 1
    assert rows[0]["__error"]
    assert rows[0]["__raw"] == b"{not json"


def test_a_start_with_a_number_is_read_with_it(fake: FakeKinesis) -> None:
    sequences = put(fake, 3)
    rows, _ = read_one(make_spec(), split_of(ZERO, render_position(at_sequence(sequences[1]))), fake)
    assert numbers(rows) == [1, 2]


def test_aggregates_are_taken_apart_and_a_limit_may_cut_inside(fake: FakeKinesis) -> None:
    number = fake.put(aggregate([("a", row("a", n)) for n in range(5)]), shard=ZERO)
    put(fake, 1, first=5)
    spec, at, seen = make_spec(), "", list[tuple[int, int]]()
    ends = list[str]()
    for _ in range(3):
        rows, end = read_one(spec, split_of(ZERO, at, limits=Limits(rows=2, seconds=9.0)), fake)
        seen += [(int(row["n"]), row["_sub_sequence"]) for row in rows]
        at = end.end
        ends.append(at)
    assert seen == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 0)]
    assert ends[:2] == [f"AT {number} 2", f"AT {number} 4"]


def test_aggregates_stay_whole_when_the_job_says_so(fake: FakeKinesis) -> None:
    whole = aggregate([("a", row("a", 1)), ("b", row("b", 2))])
    fake.put(whole, shard=ZERO)
    rows, end = read_one(make_spec(kpl=Kpl.OFF), split_of(ZERO, ""), fake)
    assert all(row["__error"] for row in rows)
    assert end.received_bytes == len(whole)


def test_an_aggregate_with_a_key_of_another_shard_is_left_out_whole_and_counted(fake: FakeKinesis) -> None:
    fake.put(aggregate([("a", row("a", 1), 5), ("b", row("b", 2), 50)]), shard=ZERO)
    fake.put(aggregate([("a", row("a", 3), 5), ("b", row("b", 4), 6)]), shard=ZERO)
    put(fake, 1, first=9)
    rows, end = read_one(make_spec(kpl=Kpl.HASH_RANGE), split_of(ZERO, "", hash_start=0, hash_end=10), fake)
    assert numbers(rows) == [3, 4, 9]
    assert end.skipped == 2
    assert numbers(read_one(make_spec(), split_of(ZERO, "", hash_start=0, hash_end=10), fake)[0]) == [1, 2, 3, 4, 9]


def test_a_position_inside_an_aggregate_that_is_no_longer_taken_apart_stops(fake: FakeKinesis) -> None:
    number = fake.put(aggregate([("a", row("a", n)) for n in range(5)]), shard=ZERO)
    with pytest.raises(StageError, match=r"property\.kpl"):
        read_one(make_spec(kpl=Kpl.OFF), split_of(ZERO, f"AT {number} 3"), fake)


def test_a_position_inside_an_aggregate_that_is_gone_stops(fake: FakeKinesis) -> None:
    number = fake.put(aggregate([("a", row("a", n)) for n in range(5)]), shard=ZERO)
    fake.clock.sleep(25 * 3600.0)
    for closed in (False, True):
        if closed:
            fake.split(ZERO)
        with pytest.raises(StageError, match="was trimmed"):
            read_one(make_spec(), split_of(ZERO, f"AT {number} 3"), fake)


@pytest.mark.parametrize("closed", [True, False])
def test_the_record_before_the_position_is_looked_for_where_it_is_about_to_go(fake: FakeKinesis, closed: bool) -> None:
    sequences = put(fake, 3)
    if closed:
        fake.split(ZERO)
    split = split_of(ZERO, render_position(after_sequence(sequences[1])), verify=True)
    assert numbers(read_one(make_spec(), split, fake)[0]) == [2]
    fake.retention_hours = 0
    fake.clock.sleep(1.0)
    with pytest.raises(StageError, match="cannot be read" if closed else "was trimmed"):
        read_one(make_spec(), split, fake)


def test_splits_end_one_after_the_other_and_shards_are_fetched_side_by_side() -> None:
    fake = FakeKinesis(ManualClock(), shards=6)
    for n in range(6):
        put(fake, 4, first=10 * n, shard=shard(n))
    first_four, original, known = threading.Barrier(4, timeout=20), fake.get_records, {shard(n) for n in range(4)}

    def together(**arguments: Any) -> dict[str, Any]:
        name = threading.current_thread().name.removeprefix("lading-")
        if name in known:
            known.remove(name)
            first_four.wait()
        return original(**arguments)

    fake.get_records = together  # type: ignore[method-assign]
    found = read_all(make_spec(), [split_of(shard(n), "", number=n) for n in range(6)], fake)
    assert [numbers(rows) for rows, _ in found] == [[10 * n + m for m in range(4)] for n in range(6)]


def test_no_more_is_fetched_than_the_buffer_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "BUFFER_BYTES", 1_000)
    fake = FakeKinesis(ManualClock(), shards=2)
    for n in range(50):
        for number in range(2):
            fake.put(row("k", n, pad="x" * 600), shard=shard(number))
    reading = read_splits(
        make_spec(max_records=1), [split_of(shard(number), "", number=number) for number in range(2)], client=fake
    )
    first = next(reading)
    waiting = [call for call in fake.calls_of("get_records") if call["ShardId"] == shard(1)]
    assert len(waiting) <= 2
    rest = [first, *reading]
    assert sum(item.num_rows for item in rest if isinstance(item, pa.RecordBatch)) == 100


def test_threads_end_when_the_rows_are_no_longer_wanted() -> None:
    fake = FakeKinesis(ManualClock(), shards=2)
    put(fake, 5)
    fake.fail("get_records", "ProvisionedThroughputExceededException", times=10_000, ShardId=shard(1))
    limits = Limits(seconds=600.0)
    task = read_splits(
        make_spec(), [split_of(shard(number), "", number=number, limits=limits) for number in range(2)], client=fake
    )
    assert isinstance(next(task), pa.RecordBatch)
    task.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lading-shard")]


def test_the_pace_of_a_shard_is_kept(fake: FakeKinesis) -> None:
    put(fake, 4)
    clock = SystemClock()
    begun = clock.monotonic_s()
    spec = make_spec(max_records=1, pace=Pace(calls_per_s=20.0))
    assert len(read_one(spec, split_of(ZERO, "", limits=LIMITS), fake)[0]) == 4
    assert clock.monotonic_s() - begun >= 4 / 20


def test_every_shard_gets_its_turn_when_time_is_short() -> None:
    fake = FakeKinesis(ManualClock(), shards=3)
    for n in range(3):
        put(fake, 400, shard=shard(n))
    spec = make_spec(max_records=1, pace=Pace(calls_per_s=100.0))
    limits = Limits(seconds=0.6)
    found = read_all(spec, [split_of(shard(n), "", number=n, limits=limits) for n in range(3)], fake)
    assert all(0 < end.rows < 400 for _, end in found)
    assert all(end.lag_ms for _, end in found)


def test_a_lost_answer_of_the_last_split_loses_no_other(fake: FakeKinesis) -> None:
    put(fake, 2)
    reading = read_splits(make_spec(), [split_of(ZERO, ""), split_of(shard(9), "", number=1)], client=fake)
    assert isinstance(next(reading), pa.RecordBatch)
    assert isinstance(next(reading), SplitEnd)
    with pytest.raises(StageError):
        next(reading)
