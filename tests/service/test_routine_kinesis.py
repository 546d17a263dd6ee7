"""Routine loads from Kinesis, end to end on Spark, against a server that reshards as Kinesis does."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lading.errors import LadingError
from lading.service.views.jobs import JobViews
from lading.testing.kinesis.server import KinesisServer, wait_until_active
from lading.testing.marked import secret
from tests.service.conftest import Desk


class Stream:
    """A stream, and the words to load it."""

    def __init__(self, server: KinesisServer, desk: Desk, shards: int = 2) -> None:
        self.name = f"s{uuid.uuid4().hex[:8]}"
        self.desk = desk
        self._server = server
        self.client = server.create_stream(self.name, shards)
        desk.sql("CREATE TABLE t (id BIGINT NOT NULL, city VARCHAR(10), amount DECIMAL(10,2)) USING delta")

    def send(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self.put(json.dumps({"id": number, "city": "essen"}), str(number))

    def put(self, text: str, key: str) -> None:
        self.client.put_record(StreamName=self.name, Data=text.encode(), PartitionKey=key)

    def split(self) -> None:
        """Cut the first open shard in half."""
        shards = self.client.list_shards(StreamName=self.name)["Shards"]
        parents = {shard.get("ParentShardId") for shard in shards}
        shard = next(each for each in shards if each["ShardId"] not in parents)
        hashes = shard["HashKeyRange"]
        middle = (int(hashes["StartingHashKey"]) + int(hashes["EndingHashKey"])) // 2
        self.client.split_shard(StreamName=self.name, ShardToSplit=shard["ShardId"], NewStartingHashKey=str(middle))
        wait_until_active(self.client, self.name)

    def source(self, **more: str) -> str:
        given = {
            "aws.region": self._server.region,
            "kinesis_stream": self.name,
            "aws.endpoint": self._server.endpoint,
            "aws.access_key": self._server.access_key,
            "aws.secret_key": self._server.secret_key,
            **{name.replace("__", "."): value for name, value in more.items()},
        }
        return "FROM KINESIS(" + ", ".join(f'"{name}"="{value}"' for name, value in given.items()) + ")"

    def create(self, clauses: str = "", properties: str = "", **more: str) -> None:
        if "kinesis_shards" not in more:
            more.setdefault("property__kinesis_default_pos", "TRIM_HORIZON")
        said = f'PROPERTIES("format"="json"{properties and ", "}{properties})'
        self.desk.sql(f"CREATE ROUTINE LOAD j ON t {clauses} {said} {self.source(**more)}")

    def show(self, column: str) -> Any:
        found = self.desk.lading.sql("SHOW ALL ROUTINE LOAD FOR j")[-1].dicts()[-1][column]
        return json.loads(found) if str(found).startswith("{") else found

    def ids(self) -> list[int]:
        return self.desk.ids("t")


@pytest.fixture
def stream(kinesis: KinesisServer, desk: Desk) -> Stream:
    return Stream(kinesis, desk)


def test_records_become_rows_once_through_a_reshard(stream: Stream) -> None:
    stream.send(0, 20)
    stream.create()
    stream.desk.run()
    assert stream.ids() == list(range(20))
    stream.split()
    stream.send(20, 20)
    for _ in range(3):
        stream.desk.run()
    assert stream.ids() == list(range(40))
    assert len(stream.show("Progress")) == 3
    statistic = stream.show("Statistic")
    assert (statistic["totalRows"], statistic["openShardNum"], statistic["trackedShardNum"]) == (40, 3, 3)
    assert stream.show("DataSourceProperties")["closedKinesisShards"] == "", "its children are being read"
    assert stream.show("CustomProperties")["aws.secret_key"] == "******"
    assert set(stream.show("Lag").values()) == {0}
    assert stream.desk.lading.verify("shop.j").is_clean
    last = JobViews(stream.desk.lading).batches("shop.j")[0]
    ranges = json.loads(last.running_offset)
    assert all(each["start"].startswith("AFTER ") or each["start"] == "TRIM_HORIZON" for each in ranges.values())
    assert {name: each["end"] for name, each in ranges.items()}.items() <= stream.show("Progress").items()


def test_a_job_that_begins_at_the_end_reads_what_comes_later(stream: Stream) -> None:
    stream.send(0, 10)
    stream.create(property__kinesis_default_pos="LATEST")
    stream.desk.run()
    stream.desk.restart()
    stream.send(10, 10)
    stream.desk.run()
    assert stream.ids() == list(range(10, 20))


def test_what_the_stream_tells_of_a_record_can_be_loaded(stream: Stream) -> None:
    stream.send(0, 2)
    stream.create("COLUMNS (id, city, city = concat(_partition_key, '!')), WHERE _shard <> ''")
    stream.desk.run()
    assert stream.desk.sql("SELECT id, city FROM t ORDER BY id") == [(0, "0!"), (1, "1!")]


def test_a_bad_record_pauses_the_job_and_resume_passes_over_it(stream: Stream) -> None:
    stream.send(0, 3)
    stream.put("{broken", "3")
    stream.create()
    stream.desk.run()
    assert (stream.show("State"), stream.ids()) == ("PAUSED", [0, 1, 2])
    assert "errCode = 102" in stream.show("ReasonOfStateChanged")
    assert stream.desk.sql("SHOW LOAD ERRORS FOR j")[0][4] == "{broken"
    stream.send(4, 2)
    stream.desk.restart()
    stream.desk.sql("RESUME ROUTINE LOAD FOR j")
    stream.desk.run()
    assert (stream.show("State"), stream.ids()) == ("RUNNING", [0, 1, 2, 4, 5])


def test_a_position_is_moved_back_and_rows_are_loaded_again(stream: Stream) -> None:
    stream.send(0, 6)
    stream.create()
    stream.desk.run()
    stream.desk.sql("PAUSE ROUTINE LOAD FOR j")
    shard = next(name for name, at in sorted(stream.show("Progress").items()) if at.isdigit())
    change = (
        f'ALTER ROUTINE LOAD FOR j FROM KINESIS("kinesis_shards"="{shard}", "kinesis_shards_pos"="TRIM_HORIZON", '
        '"property.discovery"="ON")'
    )
    row = stream.desk.sql(f"EXPLAIN {change}")[0]
    assert (row[3], row[4], row[5]) == ("BACK", "unknown", "0")
    stream.desk.sql(change)
    stream.desk.sql("RESUME ROUTINE LOAD FOR j")
    stream.desk.run()
    again = stream.ids()
    assert sorted(set(again)) == list(range(6))
    assert 6 < len(again) <= 12


def test_show_create_makes_a_job_that_does_not_read_finished_shards_again(stream: Stream) -> None:
    stream.send(0, 10)
    stream.create()
    stream.desk.run()
    stream.split()
    for _ in range(3):
        stream.desk.run()
    text = str(stream.desk.sql("SHOW CREATE ROUTINE LOAD FOR j")[0][2])
    assert "SHARD_END" in text
    assert "******" in text
    stream.desk.sql("STOP ROUTINE LOAD FOR j")
    stream.send(10, 10)
    stream.split()
    stream.desk.sql(text.replace("******", secret("kinesis")))
    for _ in range(3):
        stream.desk.run()
    assert stream.ids() == list(range(20))


def test_a_wrong_stream_or_key_is_told_at_once(stream: Stream) -> None:
    with pytest.raises(LadingError, match="was not found"):
        stream.desk.sql(f"CREATE ROUTINE LOAD j ON t {stream.source(kinesis_stream='nosuch')}")
    with pytest.raises(LadingError, match="has no shard"):
        stream.create(kinesis_shards="shardId-000000000009", kinesis_shards_pos="LATEST")
    assert stream.desk.sql("SHOW ALL ROUTINE LOAD") == []


def test_a_sequence_number_names_the_first_record_that_is_loaded(kinesis: KinesisServer, desk: Desk) -> None:
    stream = Stream(kinesis, desk, shards=1)
    numbers = [
        stream.client.put_record(StreamName=stream.name, Data=b'{"id": %d}' % n, PartitionKey="k")["SequenceNumber"]
        for n in range(5)
    ]
    stream.create(kinesis_shards="shardId-000000000000", kinesis_shards_pos=numbers[2])
    stream.desk.run()
    assert stream.ids() == [2, 3, 4]
    text = str(desk.sql("SHOW CREATE ROUTINE LOAD FOR j")[0][2])
    assert f'"kinesis_shards_pos" = "AFTER {numbers[4]}"' in text


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"kinesis_shards": "shardId-000000000009", "kinesis_shards_pos": "TRIM_HORIZON"}, "shardId-000000000009"),
        ({"kinesis_shards": "shardId-000000000000", "kinesis_shards_pos": "LATEST,LATEST"}, "Number of shards must"),
        ({"property__kinesis_default_pos": "2999-01-01 00:00:00"}, "future"),
        ({"aws__region": "nowhere"}, "Invalid AWS region format"),
        ({"kinesis_what": "x"}, "is invalid Kinesis property or cannot be set"),
    ],
)
def test_a_start_that_cannot_be_is_refused_and_nothing_is_made(
    stream: Stream, more: dict[str, str], message: str
) -> None:
    with pytest.raises(LadingError, match=message):
        stream.create(**more)
    assert stream.desk.sql("SHOW ALL ROUTINE LOAD") == []


def test_empty_records_are_passed_over_and_large_ones_are_loaded(stream: Stream) -> None:
    stream.put(" ", "a")
    stream.put(json.dumps({"id": 1, "city": "x" * 900_000}), "b")
    stream.create(properties='"max_error_number"="1"')
    stream.desk.run()
    assert stream.ids() == [1]


def test_desired_concurrent_number_bounds_the_tasks_of_a_batch(stream: Stream, spark: SparkSession) -> None:
    stream.send(0, 40)
    stream.create(properties='"desired_concurrent_number"="1"')
    known = task_counts(spark)
    stream.desk.run()
    assert stream.ids() == list(range(40))
    assert stream.show("JobProperties")["current_concurrent_number"] == "1"
    ran = [count for stage, count in task_counts(spark).items() if stage not in known]
    assert ran
    assert set(ran) == {1}


def task_counts(spark: SparkSession) -> dict[int, int]:
    """Tasks of every stage that Spark remembers, by its number."""
    tracker = spark.sparkContext.statusTracker()
    stages = {number: tracker.getStageInfo(number) for number in range(5000)}
    return {number: stage.numTasks for number, stage in stages.items() if stage is not None}
