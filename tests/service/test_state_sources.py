"""Jobs with state over every source, from the statement that somebody types to what another reader finds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, Protocol

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from lading.testing.kinesis.server import KinesisServer
from lading.testing.marked import secret
from tests.service.conftest import Desk
from tests.service.test_routine_kafka import Topic
from tests.service.test_routine_kinesis import Stream
from tests.service.test_s3_jobs import put
from tests.support.kafka_broker import KafkaBroker
from tests.tables.s3_server import S3Server

Click = tuple[int, str]
Event = tuple[int, str, str, int]
DEDUP = (
    '"watermark.column"="at", "watermark.delay"="10 minutes", "watermark.idle_timeout"="0", '
    '"dedup.keys"="id", "dedup.horizon"="1 hour"'
)
DAY = "2026-01-01 "


class Partitions(Protocol):
    """A stream of two partitions."""

    def create(self) -> None: ...
    def send(self, partition: int, clicks: Sequence[Click]) -> None: ...
    def show(self, column: str) -> Any: ...


class KafkaClicks:
    """Lines of CSV in two partitions of a topic."""

    def __init__(self, topic: Topic) -> None:
        self._topic, self.show = topic, topic.show

    def create(self) -> None:
        source = self._topic.source(property__kafka_default_offsets="OFFSET_BEGINNING")
        words = f'COLUMNS TERMINATED BY ",", COLUMNS (id, at) PROPERTIES ({DEDUP})'
        self._topic.desk.sql(f"CREATE ROUTINE LOAD j ON clicks {words} {source}")

    def send(self, partition: int, clicks: Sequence[Click]) -> None:
        self._topic.send({partition: [f"{key},{DAY}{at}" for key, at in clicks]})


class KinesisClicks:
    """JSON in two shards of a stream."""

    hashes = ("0", str(2**128 - 1))
    """One in each shard."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self.show = stream, stream.show

    def create(self) -> None:
        source = self._stream.source(property__kinesis_default_pos="TRIM_HORIZON")
        self._stream.desk.sql(f'CREATE ROUTINE LOAD j ON clicks PROPERTIES ("format"="json", {DEDUP}) {source}')

    def send(self, partition: int, clicks: Sequence[Click]) -> None:
        for key, at in clicks:
            self._stream.client.put_record(
                StreamName=self._stream.name,
                Data=json.dumps({"id": key, "at": DAY + at}).encode(),
                PartitionKey="-",
                ExplicitHashKey=self.hashes[partition],
            )


def walk(desk: Desk, stream: Partitions) -> None:
    """Rows that come twice in a partition, in another one, in a later batch and behind the horizon; and late ones."""
    desk.sql("CREATE TABLE clicks (id BIGINT, at DATETIME) USING delta")
    stream.send(0, [(1, "12:00:00"), (1, "12:00:01"), (2, "12:00:10")])
    stream.send(1, [(3, "12:00:00"), (2, "12:00:20"), (1, "12:00:30")])
    stream.create()
    desk.run()
    assert found(desk) == [1, 2, 3]
    desk.restart()
    stream.send(0, [(2, "12:05:00"), (4, "12:30:00")])
    stream.send(1, [(5, "12:40:00"), (4, "12:31:00")])
    desk.run()
    told = stream.show("Statistic")
    # The slower partition has come to half past twelve.
    assert told["watermark"] == "2026-01-01 12:20:00+00:00"
    assert (told["loadedRows"], told["duplicateRows"], told["lateRows"]) == (5, 5, 0)
    desk.restart()
    stream.send(0, [(6, "12:19:59"), (1, "12:10:00"), (4, "12:32:00"), (7, "12:20:00")])
    stream.send(1, [(3, "13:00:00"), (3, "12:59:59"), (8, "12:50:00")])
    desk.run()
    # Late: 6, and 1 once more. An hour after the first row of key 3 there is another first one; its second one is near
    # to both.
    assert found(desk) == [1, 2, 3, 3, 4, 5, 7, 8]
    told = stream.show("Statistic")
    assert (told["totalRows"], told["loadedRows"], told["duplicateRows"], told["lateRows"]) == (17, 8, 7, 2)
    assert told["errorRows"] == 0
    [shown] = desk.lading.sql("SHOW CREATE ROUTINE LOAD FOR j")[-1].dicts()
    assert '"dedup.horizon"' in str(shown)
    assert len(desk.sql("SHOW LOAD ERRORS FOR shop.j")) == 2  # The late ones.
    verdict = desk.lading.verify("shop.j")
    assert (verdict.is_clean, verdict.rows) == (True, 8)


def found(desk: Desk) -> list[int]:
    """As Polars reads the table."""
    return sorted(pl.read_delta(desk.lading.catalog.open_table("shop", "clicks").location)["id"].to_list())


def test_a_routine_load_from_kafka_loads_each_key_once(desk: Desk, broker: KafkaBroker) -> None:
    walk(desk, KafkaClicks(Topic(broker, desk, partitions=2)))


@pytest.mark.slow
def test_a_routine_load_from_kinesis_loads_each_key_once(desk: Desk, kinesis: KinesisServer) -> None:
    walk(desk, KinesisClicks(Stream(kinesis, desk, shards=2)))


class Lake:
    """A bucket with rows, tables and the jobs between them."""

    def __init__(self, desk: Desk, s3: S3Server, form: str) -> None:
        self.desk, self._s3, self._form = desk, s3, form
        self._bucket = s3.make_bucket()
        self.rows: list[Event] = []

    def create(self, name: str, columns: str, select: str, more: str = "", group: str = "") -> None:
        keys = f'"s3.access_key"="{secret("access")}", "s3.secret_key"="{secret("key")}"'
        reach = f'"s3.endpoint"="{self._s3.endpoint}", "s3.region"="us-east-1", "use_path_style"="true", {keys}'
        place = f"LOCATION 's3://{self._bucket}/lake/{name}' TBLPROPERTIES ({reach})"
        self.desk.sql(f"CREATE TABLE {name} ({columns}) USING {self._form} {place}")
        self.desk.sql(
            f"CREATE JOB {name} PROPERTIES ('watermark.column'='at', 'watermark.delay'='1 minute'{more}) ON STREAMING "
            f'DO INSERT INTO {name} SELECT {select} FROM S3("uri"="s3://{self._bucket}/in/*.csv", '
            f'"format"="csv_with_names", "column_separator"=",", {reach}) {group}'
        )

    def put(self, name: str, rows: Sequence[Event]) -> None:
        lines = ["id,at,city,n", *(",".join(map(str, row)) for row in rows)]
        put(self._s3, self._bucket, f"in/{name}.csv", "\n".join(lines) + "\n")
        self.rows += rows

    def compute(self, query: str) -> list[tuple[Any, ...]]:
        """The same from all rows at once, in DuckDB."""
        rows = pl.DataFrame(self.rows, schema=["id", "happened", "city", "n"], orient="row").to_arrow()
        with duckdb.connect() as other:
            other.register("rows", rows)
            return sorted(other.sql(query).fetchall())

    def read(self, name: str) -> pa.Table:
        """As delta-rs and PyIceberg find it in the bucket, with nothing of Lading's."""
        options = self._s3.options
        location = self.desk.lading.catalog.open_table("shop", name).location
        if self._form == "delta":
            given = {
                "AWS_ENDPOINT_URL": options.endpoint,
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": secret("reader"),
                "AWS_SECRET_ACCESS_KEY": secret("reader"),
                "AWS_ALLOW_HTTP": "true",
            }
            return pa.table(deltalake.DeltaTable(location, storage_options=given).to_pyarrow_table())
        given = {
            "s3.endpoint": options.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": secret("reader"),
            "s3.secret-access-key": secret("reader"),
        }
        storage = self.desk.lading.catalog.open_table("shop", name).bills.storage
        newest = max(key for key in storage.keys("metadata/") if key.endswith(".metadata.json"))
        return StaticTable.from_metadata(f"{location}/{newest}", given).scan().to_arrow()


@pytest.mark.parametrize("form", ["delta", pytest.param("iceberg", marks=pytest.mark.slow)])
def test_files_in_s3_become_first_rows_and_counts_in_s3(desk: Desk, s3: S3Server, form: str) -> None:
    lake, rng = Lake(desk, s3, form), Random(form)
    lake.put("0", [(0, f"{DAY}12:00:00", "essen", 0)])
    lake.create(
        "firsts",
        "id BIGINT, happened DATETIME, n BIGINT",
        "id, at, n",
        ", 'dedup.keys'='id', 'dedup.horizon'='1 day'",
    )
    lake.create(
        "counts",
        "minute DATETIME, city STRING, many BIGINT, total BIGINT",
        "window_start, city, count(*), sum(cast(n AS BIGINT))",
        group="GROUP BY window(at, '1 minute'), city",
    )
    for number in (1, 2):
        lake.put(str(number), [_row(rng, number * 100 + row) for row in range(20)])
        desk.run()
        desk.restart()
    lake.put("9", [(10**6, "2026-01-02 00:00:00", "end", 10**6)])
    desk.run()
    assert _sorted(lake.read("firsts")) == lake.compute(
        "SELECT id, arg_min(happened, n)::TIMESTAMP, min(n) FROM rows GROUP BY id"
    )
    assert _sorted(lake.read("counts")) == lake.compute(
        "SELECT date_trunc('minute', happened::TIMESTAMP), city, count(*), sum(n)::BIGINT FROM rows "
        "WHERE happened < '2026-01-02' GROUP BY ALL"
    )
    for name in ("firsts", "counts"):
        verdict = desk.lading.verify(name)
        assert verdict.is_clean
        assert verdict.rows > 4


def _row(rng: Random, number: int) -> Event:
    """At most half a minute late; about every second one was sent before."""
    second = number % 100 + 60 * (number // 100) - rng.randrange(30)
    at = f"{DAY}12:{second // 60:02}:{second % 60:02}"
    return rng.randrange(20), at, rng.choice(("essen", "köln")), number


def _sorted(table: pa.Table) -> list[tuple[Any, ...]]:
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return sorted(tuple(v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v for v in row) for row in rows)
