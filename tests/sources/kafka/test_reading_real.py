"""What only a real log has: transactions, compaction, retention, brokers that die. Counts and order are exact."""

from __future__ import annotations

import random
from threading import Thread, Timer

import pytest

from lading.clock import SystemClock
from lading.errors import ListingError, SourceError, StageError, TrimmedError
from lading.model.batch import Limits
from lading.model.rows import SplitEnd
from lading.sources.kafka.reader import read_splits
from tests.sources.kafka.support import Loader, Read, Topic, read, row
from tests.support.kafka_broker import KafkaBroker


def test_only_committed_transactions_are_read_and_their_marks_are_passed(topic: Topic) -> None:
    topic.commit(topic.begin(0, 5))
    topic.abort(topic.begin(1000, 1005))
    topic.commit(topic.begin(5, 10))
    topic.abort(topic.begin(1005, 1010))
    loader = Loader(topic.spec()).open().drain()
    assert loader.numbers == list(range(10))
    assert loader.at == {"0": "24"}
    assert loader.batches == 2


def test_a_range_may_end_anywhere_among_marks_and_aborted_records(topic: Topic) -> None:
    for number in range(3):
        topic.abort(topic.begin(1000, 1003))
        topic.commit(topic.begin(number * 2, number * 2 + 2))
    for rows in (1, 2, 3, 5, 7):
        loader = Loader(topic.spec()).open().drain(Limits(rows=rows))
        assert loader.numbers == list(range(6))
        assert loader.at == {"0": "21"}


def test_nothing_of_an_open_transaction_is_read_or_passed(topic: Topic) -> None:
    topic.count_up(0, 3)
    open_one = topic.begin(3, 6)
    topic.count_up(6, 9)
    loader = Loader(topic.spec()).open().drain()
    assert (loader.numbers, loader.at) == ([0, 1, 2], {"0": "3"})
    assert dict(loader.source.sight(loader.positions).lag) == {"0": 0}
    assert Loader(topic.spec()).open("").at == {"0": "3"}
    topic.commit(open_one)
    assert sorted(loader.drain().numbers) == list(range(9))
    assert loader.at == {"0": "10"}


def test_a_position_among_open_transactions_waits(topic: Topic) -> None:
    open_one = topic.begin(0, 6)
    loader = Loader(topic.spec()).open('{"partitions": {"0": "4"}}')
    assert not loader.batch()
    topic.commit(open_one)
    assert loader.drain().numbers == [4, 5]


def test_a_planned_end_holds_though_more_has_come(topic: Topic) -> None:
    topic.commit(topic.begin(0, 5))
    loader = Loader(topic.spec()).open()
    splits = loader.planner.plan(loader.positions, Limits()).splits
    topic.abort(topic.begin(1000, 1500))
    later = topic.begin(5, 10)
    got = read(loader.spec, splits)
    assert (got.numbers, got.ends[0].end) == ([0, 1, 2, 3, 4], "6")
    topic.commit(later)
    assert read(loader.spec, splits).rows == got.rows


def test_gaps_of_compaction_do_not_stall_and_nothing_is_left_out(broker: KafkaBroker) -> None:
    compacting = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": "0",
        "max.compaction.lag.ms": "100",
        "delete.retention.ms": "100",
    }
    topic = Topic(broker, config=compacting)
    for lap in range(10):
        topic.write((key, row(key, lap)) for key in range(50))
    topic.write([("last", row("last", 99))])
    clock, until_s = SystemClock(), SystemClock().monotonic_s() + 30
    while True:
        # A new segment is begun only when something is written.
        clock.sleep(0.3)
        topic.write([("last", row("last", 99))])
        loader = Loader(topic.spec()).open().drain()
        if sum(one["k"] != "last" for one in loader.rows) == 50 or clock.monotonic_s() > until_s:
            break
    kept = [(one["k"], int(one["n"])) for one in loader.rows if one["k"] != "last"]
    assert sorted(kept) == sorted((str(key), 9) for key in range(50))
    for rows in (1, 3, 10, 17, 449, 451):
        slow = Loader(topic.spec()).open('{"partitions": {"0": "440"}}')
        slow.drain(Limits(rows=rows))
        assert [(one["k"], int(one["n"])) for one in slow.rows if one["k"] != "last"] == kept
        assert slow.at == Loader(topic.spec()).open("").at


def test_records_that_are_trimmed_between_plan_and_read_are_an_error(topic: Topic) -> None:
    topic.count_up(0, 50)
    loader = Loader(topic.spec()).open()
    splits = loader.planner.plan(loader.positions, Limits()).splits
    topic.trim(20)
    with pytest.raises(TrimmedError, match=r"Offset out of range.*consume offset 0"):
        read(loader.spec, splits)


def test_a_topic_that_is_made_again_between_plan_and_read_is_an_error(topic: Topic) -> None:
    topic.count_up(0, 50)
    loader = Loader(topic.spec()).open()
    splits = loader.planner.plan(loader.positions, Limits()).splits
    topic.delete()
    topic.create()
    topic.count_up(1000, 1100)
    with pytest.raises(SourceError, match="while it was read"):
        read(loader.spec, splits)


def test_large_records_come_through(topic: Topic) -> None:
    large = b'{"k": "' + b"x" * 10_000_000 + b'", "n": 1}'
    topic.write([("a", row("a", 0)), ("b", large), ("c", large), ("d", row("d", 3))])
    loader = Loader(topic.spec()).open().drain()
    assert loader.numbers == [0, 1, 1, 3]
    assert [len(one["k"]) for one in loader.rows] == [1, 10_000_000, 10_000_000, 1]


def test_every_record_once_and_in_order_over_many_batches(broker: KafkaBroker) -> None:
    topic = Topic(broker, partitions=12)
    chance = random.Random(7)
    loader = Loader(topic.spec()).open()
    written = dict.fromkeys(range(12), 0)
    for _ in range(8):
        for partition in chance.sample(range(12), 5):
            count = chance.choice([1, 10, 300, 5000])
            compression = chance.choice(["none", "gzip", "snappy", "lz4", "zstd"])
            topic.count_up(written[partition], written[partition] + count, partition, compression)
            written[partition] += count
        loader.batch(Limits(rows=chance.choice([20, 1000, 100_000]), size_bytes=chance.choice([2000, 10**9])))
    loader.drain()
    for partition, count in written.items():
        assert [int(one["n"]) for one in loader.rows if one["_partition"] == partition] == list(range(count))
        assert loader.at[str(partition)] == str(count)


@pytest.mark.slow  # tests/crash kills the broker in the middle of a batch for every change
def test_a_broker_that_dies_and_comes_back_loses_and_doubles_nothing(own_broker: KafkaBroker) -> None:
    broker = own_broker
    topic = Topic(broker, partitions=2)
    filler = "x" * 1000
    for partition in range(2):
        topic.write(((n, row(filler, n)) for n in range(25_000)), partition)
    # A small queue, so that most of the range is still at the broker when it dies.
    loader = Loader(topic.spec(client={"queued.max.messages.kbytes": "2000"})).open()
    splits = loader.planner.plan(loader.positions, Limits()).splits
    got, back = Read(), Thread(target=broker.start)
    for place, item in enumerate(read_splits(loader.spec, splits)):
        got.take(item)
        if place == 0:
            broker.kill()
            Timer(1.0, back.start).start()
    back.join()
    assert [end.end for end in got.ends] == ["25000", "25000"]
    assert got.numbers == [*range(25_000), *range(25_000)]


@pytest.mark.usefixtures("own_broker")
def test_a_broker_that_stays_dead_is_an_error_that_passes(topic: Topic) -> None:
    topic.write((n, row("x" * 1000, n)) for n in range(20_000))
    loader = Loader(topic.spec(patience_s=2, client={"queued.max.messages.kbytes": "2000"})).open()
    splits = loader.planner.plan(loader.positions, Limits()).splits
    items = read_splits(loader.spec, splits)
    assert not isinstance(next(items), SplitEnd)
    topic.broker.kill()
    try:
        with pytest.raises((StageError, ListingError), match=r"nothing came|did not tell") as caught:
            list(items)
        assert caught.value.retry
    finally:
        topic.broker.start()
    assert loader.drain().numbers == list(range(20_000))
