"""Reading a real server: shards that split, merge and end as those of Kinesis do."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest

from lading.errors import ConfigError, SourceError
from lading.model.batch import Limits
from lading.sources.kinesis.source import KinesisSource
from lading.sources.kinesis.spec import Credentials
from lading.testing.kinesis.generator import Generator
from lading.testing.kinesis.reshard import Resharder
from lading.testing.kinesis.server import KinesisServer, wait_until_active
from lading.testing.kinesis.verifier import verify_rows
from tests.sources.kinesis.support import Job, make_spec, row, shard
from tests.support.kinesis.aggregate import aggregate
from tests.support.kinesis.proxy import Rates, serve_faults

COUNTER = itertools.count()
MIDDLE = str(2**127)


class Stream:
    """A new stream, and jobs that read it."""

    def __init__(self, server: KinesisServer, shards: int) -> None:
        self.name = f"stream-{next(COUNTER)}"
        self.server = server
        self.client = server.create_stream(self.name, shards)

    def job(self, endpoint: str = "", **changes: Any) -> Job:
        keys = Credentials(access_key=self.server.access_key, secret_key=self.server.secret_key)
        spec = make_spec(stream=self.name, endpoint=endpoint or self.server.endpoint, credentials=keys)
        return Job(self.server.client(endpoint), spec=spec, **changes)

    def put(self, *numbers: int, key: str = "k") -> list[str]:
        told = [self.client.put_record(StreamName=self.name, Data=row(key, n), PartitionKey=key) for n in numbers]
        return [answer["SequenceNumber"] for answer in told]

    def split(self, number: int = 0, at: str = MIDDLE) -> None:
        self.client.split_shard(StreamName=self.name, ShardToSplit=shard(number), NewStartingHashKey=at)
        wait_until_active(self.client, self.name)

    def merge(self, one: int, other: int) -> None:
        self.client.merge_shards(StreamName=self.name, ShardToMerge=shard(one), AdjacentShardToMerge=shard(other))
        wait_until_active(self.client, self.name)


@pytest.fixture
def stream(kinesis: KinesisServer) -> Stream:
    return Stream(kinesis, 1)


@pytest.fixture
def two(kinesis: KinesisServer) -> Stream:
    return Stream(kinesis, 2)


def test_rows_before_and_after_a_split_come_in_order(stream: Stream) -> None:
    job = stream.job()
    job.open("TRIM_HORIZON")
    stream.put(0, 1, 2)
    stream.split()
    stream.put(3, 4)
    job.drain()
    stream.put(5)
    job.drain()
    assert job.numbers == [0, 1, 2, 3, 4, 5]
    assert job.state(0).finished


def test_a_child_is_not_read_before_its_parent_is_finished_and_committed(stream: Stream) -> None:
    job = stream.job(limits=Limits(rows=2, seconds=9.0))
    job.open("TRIM_HORIZON")
    stream.put(0, 1, 2)
    stream.split()
    stream.put(3)
    assert [split.partition for split in job.plan().splits] == [shard(0)]
    assert job.batch() == 2
    assert [split.partition for split in job.plan().splits] == [shard(0)]
    job.drain()
    assert job.numbers == [0, 1, 2, 3]


def test_rows_before_and_after_a_merge_come_in_order(two: Stream) -> None:
    job = two.job()
    job.open("TRIM_HORIZON")
    two.put(0, 1, key="a")
    two.put(0, 1, key="b")
    two.merge(0, 1)
    two.put(2, key="a")
    two.put(2, key="b")
    job.drain()
    for key in ("a", "b"):
        assert [row["n"] for row in job.rows if row["key"] == key] == ["0", "1", "2"]


def test_a_child_that_is_split_while_the_parent_still_has_rows(stream: Stream) -> None:
    job = stream.job(limits=Limits(rows=1, seconds=9.0))
    job.open("TRIM_HORIZON")
    stream.put(0, 1, 2)
    stream.split()
    stream.put(3)
    stream.split(1, str(2**126))
    stream.split(2, str(2**127 + 2**126))
    stream.put(4)
    job.drain()
    assert job.numbers == [0, 1, 2, 3, 4]
    assert [job.state(number).finished for number in range(7)] == [True] * 3 + [False] * 4


def test_latest_opened_then_nothing_read_then_rows_written_then_read(stream: Stream) -> None:
    stream.put(0, 1)
    job = stream.job()
    job.open("LATEST")
    assert job.batch() == -1
    stream.put(2, 3)
    job.crash()
    assert job.batch() == 2
    assert job.numbers == [2, 3]


def test_latest_after_a_reshard_reads_only_what_comes(two: Stream) -> None:
    two.put(0, 1)
    two.merge(0, 1)
    two.put(2)
    job = two.job()
    job.open("LATEST")
    two.put(3)
    job.drain()
    assert job.numbers == [3]


def test_latest_then_a_split_before_anything_was_read(stream: Stream) -> None:
    stream.put(0)
    job = stream.job()
    job.open("LATEST")
    stream.put(1)
    stream.split()
    stream.put(2)
    job.crash()
    job.drain()
    assert job.numbers == [1, 2]


def test_a_limit_in_the_middle_of_an_answer_loses_nothing(stream: Stream) -> None:
    stream.put(*range(20))
    size = len(row("k", 0))
    job = stream.job(limits=Limits(size_bytes=3 * size, seconds=9.0))
    job.open("TRIM_HORIZON")
    while job.batch() >= 0:
        job.crash()
    assert job.numbers == list(range(20))


def test_a_limit_inside_an_aggregate_loses_nothing(stream: Stream) -> None:
    stream.client.put_record(
        StreamName=stream.name, Data=aggregate([("k", row("k", n)) for n in range(7)]), PartitionKey="k"
    )
    stream.put(7)
    job = stream.job(limits=Limits(rows=3, seconds=9.0))
    job.open("TRIM_HORIZON")
    while job.batch() >= 0:
        job.crash()
    assert job.numbers == list(range(8))


def test_an_explicit_start_whose_first_batch_is_empty_stays_where_it_is(stream: Stream) -> None:
    numbers = stream.put(0, 1, 2)
    job = stream.job()
    opened = job.open(numbers[2])
    assert opened.partitions[shard(0)].at == f"AT {numbers[2]}"
    job.drain()
    assert job.numbers == [2]
    again = stream.job()
    again.open(f"AT_TIMESTAMP({again.clock.now().isoformat()})")
    assert again.batch() == -1
    stream.put(3)
    again.crash()
    again.drain()
    assert again.numbers == [3]


def test_a_drained_closed_stream_whose_children_appear_later(stream: Stream) -> None:
    """Every shard is finished: an empty set of work is not a new start."""
    stream.put(0)
    job = stream.job()
    job.open("LATEST")
    stream.put(1)
    stream.split()
    job.drain()
    assert job.numbers == [1]
    stream.merge(1, 2)
    job.drain()
    assert [state.finished for state in job.positions.partitions.values()] == [True, True, True, False]
    stream.put(2)
    job.crash()
    job.drain()
    assert job.numbers == [1, 2]


def test_an_idle_stream_runs_no_batch(two: Stream) -> None:
    job = two.job()
    job.open("TRIM_HORIZON")
    two.put(0)
    job.drain()
    assert [job.batch() for _ in range(3)] == [-1, -1, -1]


def test_pages_of_a_real_listing_are_all_read(kinesis: KinesisServer) -> None:
    many = Stream(kinesis, 5)
    job = many.job()
    job.spec = make_spec(stream=many.name, endpoint=kinesis.endpoint, credentials=job.spec.credentials, max_results=2)
    job.crash()
    assert len(job.open("TRIM_HORIZON").partitions) == 5


def test_a_stream_that_was_deleted_and_made_again_is_another(stream: Stream) -> None:
    job = stream.job()
    job.open("TRIM_HORIZON")
    stream.client.delete_stream(StreamName=stream.name)
    while stream.name in stream.client.list_streams(Limit=1000)["StreamNames"]:
        pass
    stream.server.create_stream(stream.name, 1)
    with pytest.raises(SourceError):
        job.plan()


def test_a_stream_that_is_not_there_is_told_with_a_client_of_its_own(kinesis: KinesisServer) -> None:
    keys = Credentials(access_key=kinesis.access_key, secret_key=kinesis.secret_key)
    spec = make_spec(stream="nowhere", endpoint=kinesis.endpoint, credentials=keys)
    with pytest.raises(ConfigError, match="nowhere was not found"):
        KinesisSource(spec, Job(kinesis.client()).clock).check()


def _key_rows(job: Job) -> list[tuple[str, int]]:
    return [(row["key"], int(row["n"])) for row in job.rows]


@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_ten_rounds_of_random_reshards_while_records_are_written(kinesis: KinesisServer, seed: int) -> None:
    """Count, distinct, and the order of each key, with a process that forgets everything now and then."""
    stream, random = Stream(kinesis, 2), Random(seed)
    generator = Generator(stream.client, stream.name, seed=seed)
    reshards = Resharder(stream.client, stream.name, seed=seed)
    job = stream.job()
    job.open("TRIM_HORIZON")
    for _ in range(10):
        generator.put(random.randint(5, 40))
        reshards.step()
        generator.put(random.randint(0, 20))
        job.limits = Limits(rows=random.choice((3, 17, 1000)), seconds=9.0)
        for _ in range(random.randint(0, 2)):
            job.batch()
        if random.random() < 0.4:
            job.crash()
    job.limits = Limits(rows=100_000, seconds=9.0)
    job.drain()
    verdict = verify_rows(_key_rows(job), generator.sent, maybe_twice=generator.maybe_twice)
    assert verdict.is_exact, (verdict, reshards.story)
    assert verdict.rows == generator.count


def test_nothing_is_lost_or_doubled_behind_a_proxy_that_makes_trouble(kinesis: KinesisServer) -> None:
    stream = Stream(kinesis, 2)
    generator = Generator(stream.client, stream.name, seed=5)
    reshards = Resharder(stream.client, stream.name, seed=5)
    rates = Rates(throttled=0.1, expired=0.1, failed=0.05, dropped=0.05)
    with serve_faults(kinesis.endpoint, rates, seed=5) as proxy:
        job = stream.job(proxy.endpoint, limits=Limits(rows=40, seconds=9.0))
        job.open("TRIM_HORIZON")
        for _ in range(3):
            generator.put(40)
            reshards.step()
            job.batch()
        job.drain()
        assert sum(proxy.made.values()) > 3
    assert verify_rows(_key_rows(job), generator.sent, maybe_twice=generator.maybe_twice).is_exact
