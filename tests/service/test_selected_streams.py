"""CREATE JOB … SELECT … FROM KINESIS(…) and FROM KAFKA(…), from the statement to the table that somebody else reads."""

from __future__ import annotations

import json
import uuid
from typing import Any

import duckdb
import polars as pl
import pytest

from lading.errors import LadingError
from lading.service.scheduling.lag_poller import LagRounds
from lading.service.telemetry.metrics import Metrics
from lading.testing.kinesis.server import KinesisServer
from lading.testing.marked import secret
from tests.service.conftest import Desk
from tests.service.test_routine_kafka import Topic, topic

__all__ = ["topic"]


class Selected:
    """A stream of clicks, and the words to select from it."""

    def __init__(self, server: KinesisServer, desk: Desk, shards: int = 2) -> None:
        self.name, self.desk, self._server = f"s{uuid.uuid4().hex[:8]}", desk, server
        self.client = server.create_stream(self.name, shards)

    def put(self, *records: dict[str, object], key: str = "") -> None:
        for record in records:
            text = json.dumps(record).encode()
            self.client.put_record(StreamName=self.name, Data=text, PartitionKey=key or str(record.get("id")))

    def source(self, **more: str) -> str:
        given = {
            "aws.region": self._server.region,
            "kinesis_stream": self.name,
            "aws.endpoint": self._server.endpoint,
            "aws.access_key": self._server.access_key,
            "aws.secret_key": self._server.secret_key,
            "property.kinesis_default_pos": "TRIM_HORIZON",
            "format": "json",
            **more,
        }
        return "KINESIS(" + ", ".join(f'"{name}"="{value}"' for name, value in given.items()) + ")"

    def create(self, select: str, rest: str = "", properties: str = "", **more: str) -> None:
        said = f"PROPERTIES({properties})" if properties else ""
        self.desk.sql(
            f"CREATE JOB j {said} ON STREAMING DO INSERT INTO t SELECT {select} FROM {self.source(**more)} {rest}"
        )

    def rows(self) -> list[tuple[Any, ...]]:
        """As Polars reads the table."""
        return sorted(pl.read_delta(self.desk.lading.catalog.open_table("shop", "t").location).rows(), key=str)


@pytest.fixture
def stream(kinesis: KinesisServer, desk: Desk) -> Selected:
    return Selected(kinesis, desk)


def test_what_a_job_has_works_over_a_stream(stream: Selected) -> None:
    desk = stream.desk
    desk.sql("CREATE TABLE t (id BIGINT, city STRING, shard STRING) USING delta")
    stream.put(*({"id": n, "city": "essen"} for n in range(6)), {"id": 6, "city": "bonn"}, {"id": "seven"})
    words = "id, upper(city), _shard"
    stream.create(words, "WHERE city <> 'bonn' OR city IS NULL", "'session.enable_insert_strict'='false'")
    desk.run()
    # Not strict: a value that cannot be read is NULL, and so is a field that the record does not have.
    assert [row[:2] for row in stream.rows()] == [
        *((n, "ESSEN") for n in range(6)),
        (None, None),
    ]
    assert all(str(row[2]).startswith("shardId-") for row in stream.rows() if row[0] is not None)
    offset = json.loads(desk.show("CurrentOffset"))
    assert len(offset) == 2
    plan = {str(what): str(how) for what, how in desk.sql("EXPLAIN JOB j")}
    assert plan["source"] == f"KINESIS {stream.name}"
    shown = str(desk.sql("SHOW CREATE JOB j")[0])
    assert "******" in shown
    assert desk.lading.verify("j").is_clean
    desk.sql("PAUSE JOB WHERE jobName = 'j'")
    everywhere = json.dumps(dict.fromkeys(offset, "TRIM_HORIZON"))
    moves = desk.sql(f"EXPLAIN ALTER JOB j PROPERTIES('offset'='{everywhere}')")
    assert {row[3] for row in moves} == {"BACK"}
    desk.sql(f"ALTER JOB j PROPERTIES('offset'='{everywhere}') COMMENT 'again'")
    desk.restart()
    stream.put({"id": 8, "city": "essen"})
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert sorted(row[0] for row in stream.rows() if row[0] is not None) == sorted([*range(6), *range(6), 8])
    metrics = Metrics(desk.lading.store, desk.lading.clock)
    desk.lading.watches.append(metrics)
    LagRounds(desk.lading, metrics).look()
    assert desk.show("Lag") == "0"


def test_a_bad_record_refuses_the_batch_or_goes_to_quarantine(stream: Selected) -> None:
    desk = stream.desk
    desk.sql("CREATE TABLE t (id BIGINT, city STRING) USING delta")
    stream.put({"id": 1, "city": "essen"}, {"id": "x", "city": "köln"})
    stream.client.put_record(StreamName=stream.name, Data=b"{broken", PartitionKey="1")
    stream.create("id, city")
    desk.run()
    assert (desk.show("Status"), stream.desk.ids("t")) == ("PAUSED", [])
    changed = stream.source(num_as_string="true")
    desk.sql(
        f"ALTER JOB j PROPERTIES('session.enable_insert_strict'='false') INSERT INTO t SELECT id, city FROM {changed}"
    )
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert stream.rows() == [(1, "essen"), (None, "köln")]
    assert [row[4] for row in desk.sql("SHOW LOAD ERRORS FOR j")] == ["{broken"]


def test_windows_over_a_stream_close_and_an_idle_one_ticks(stream: Selected) -> None:
    desk = stream.desk
    desk.sql("CREATE TABLE t (minute DATETIME, city STRING, n BIGINT, ids DECIMAL(20,0)) USING delta")
    rows = [(n, ("essen", "köln")[n % 2], f"2026-01-01 12:{n // 9:02}:{n * 7 % 60:02}") for n in range(60)]
    stream.create(
        "window_start, city, count(*), sum(cast(id AS BIGINT))",
        "GROUP BY window(at, '1 minute'), city",
        "'watermark.column'='at', 'watermark.delay'='10 seconds', 'watermark.idle_timeout'='1 second'",
    )
    for first in range(0, 60, 30):
        stream.put(*({"id": n, "city": city, "at": at} for n, city, at in rows[first : first + 30]))
        desk.run()
    # The last record pushes one shard; the other has nothing left, is idle, and a commit without rows moves on.
    stream.put({"id": 1000, "city": "end", "at": "2026-01-02 00:00:00"})
    expected = (
        _connected(rows)
        .execute("SELECT date_trunc('minute', happened), city, count(*), sum(id)::DECIMAL(20,0) FROM rows GROUP BY ALL")
        .fetchall()
    )
    for _ in range(40):
        desk.run()
        if len(stream.rows()) >= len(expected):
            break
    assert stream.rows() == sorted(expected, key=str)
    assert desk.lading.verify("j").is_clean


def test_one_run_writes_the_results_that_are_due(stream: Selected) -> None:
    desk = stream.desk
    desk.sql("CREATE TABLE t (minute DATETIME, n BIGINT) USING delta")
    words = "'watermark.column'='at', 'watermark.delay'='10 seconds'"
    stream.create("window_start, count(*)", "GROUP BY window(at, '1 minute')", words)
    stream.put(*({"id": n, "at": f"2026-01-01 12:00:{n:02}"} for n in range(8)))
    stream.put(*({"id": n, "at": "2026-01-02 00:00:00"} for n in range(8)))  # In both shards.
    desk.run()
    assert [row[1] for row in stream.rows()] == [8]


def _connected(rows: list[tuple[int, str, str]]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rows (id BIGINT, city VARCHAR, happened TIMESTAMP)")
    connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", rows)
    return connection


def test_duplicates_of_a_stream_are_loaded_once(stream: Selected) -> None:
    desk = stream.desk
    desk.sql("CREATE TABLE t (id BIGINT, at DATETIME) USING delta")
    stream.create("id, at", properties="'watermark.column'='at', 'watermark.delay'='1 hour', 'dedup.keys'='id'")
    stream.put(*({"id": n % 3, "at": "2026-01-01 12:00:00"} for n in range(6)))
    desk.run()
    desk.restart()
    stream.put(*({"id": n, "at": "2026-01-01 12:01:00"} for n in range(5)))
    desk.run()
    assert [row[0] for row in stream.rows()] == [0, 1, 2, 3, 4]


def test_a_topic_of_kafka_is_selected_from_and_moved(topic: Topic) -> None:
    desk = topic.desk
    topic.send({0: ["1,essen,1.50", "2,köln,2.50"], 2: ["3,bonn,x"]})
    function = topic.source(
        property__kafka_default_offsets="OFFSET_BEGINNING", format="csv", columns="n, town, cost", column_separator=","
    )
    desk.sql(
        f"CREATE JOB j PROPERTIES('session.enable_insert_strict'='false') ON STREAMING DO INSERT INTO t "
        f"SELECT n + 100 * _partition, town, cost {function} WHERE town <> ''"
    )
    desk.run()
    location = desk.lading.catalog.open_table("shop", "t").location
    rows = sorted(pl.read_delta(location).rows())
    assert [(row[0], row[1]) for row in rows] == [(1, "essen"), (2, "köln"), (203, "bonn")]
    assert rows[2][2] is None
    assert json.loads(desk.show("CurrentOffset")) == {
        "0": "1",
        "1": "OFFSET_ZERO",
        "2": "0",
        "3": "OFFSET_ZERO",
    }
    alter = "ALTER JOB j PROPERTIES('offset'='{\"0\": \"1\"}')"
    desk.sql(f"PAUSE JOB WHERE jobName = 'j'; {alter}; UNDO ALTER JOB j")
    assert json.loads(desk.show("CurrentOffset"))["0"] == "1"
    desk.sql(alter)
    topic.send({1: ["4,ulm,4.00"]})
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert desk.ids("t") == [1, 2, 2, 104, 203]
    assert desk.lading.verify("j").is_clean
    with pytest.raises(LadingError, match="does not read partition 9"):
        desk.sql("PAUSE JOB WHERE jobName = 'j'; ALTER JOB j PROPERTIES('offset'='{\"9\": \"1\"}')")


def test_keys_of_a_stream_are_not_shown(stream: Selected) -> None:
    key = secret("aws")
    stream.desk.sql("CREATE TABLE t (id BIGINT) USING delta")
    with pytest.raises(LadingError):
        stream.create("id", **{"aws.secret_key": key, "nonsense": "x"})
