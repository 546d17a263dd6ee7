"""JOIN of two streams, from the statement to the table, compared with what DuckDB computes over the whole input."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from lading.commit.steps import STEP_NAMES
from lading.errors import SqlError
from lading.failpoints import arm, disarm_all
from lading.service.recover import recover
from lading.tables.registry import NAMES, kind_of
from lading.testing.kinesis.server import KinesisServer
from tests.service.conftest import Desk
from tests.service.listener_rig import ClockedDesk
from tests.service.stream_join_rig import (
    CSV,
    NULL,
    WATERMARK,
    at,
    bills,
    create,
    finish,
    put,
    reason,
    row,
    rows_of,
    statement,
    story,
    whole,
)
from tests.service.test_recover import lose_store
from tests.service.test_selected_streams import Selected
from tests.service.test_state_life import TimedDesk
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics
from tests.tables.optional import skip_without

IN_BATCHES = tuple(name for name in STEP_NAMES if not name.startswith(("edit", "start", "settle.before")))
WHOLE = "SELECT a.k, a.v, b.v FROM a {} JOIN b ON a.k = b.k AND b.happened BETWEEN a.happened {} AND a.happened {}"

MANY_BAD = '"session.enable_insert_strict"="false", "session.insert_max_filter_ratio"="1"'


class Killed(BaseException):
    """The process is gone here."""


@pytest.fixture
def kills() -> Iterator[None]:
    yield
    disarm_all()


@pytest.mark.parametrize(
    ("word", "low", "high", "more"),
    [
        pytest.param("", "", "+ INTERVAL 2 MINUTE", "", marks=pytest.mark.slow),
        ("LEFT", "- INTERVAL 1 MINUTE", "+ INTERVAL 1 MINUTE", " AND a.v + 500000 < b.v"),
    ],
)
def test_rows_of_two_streams_are_joined_as_over_the_whole_input(
    desk: Desk, word: str, low: str, high: str, more: str
) -> None:
    near = f"b.at BETWEEN a.at {low} AND a.at {high}"
    create(desk, join=f"{word} JOIN", on=f"a.k = b.k AND {near}{more}", where="WHERE a.v <> 1001")
    lefts, rights = list[str](), list[str]()
    for number, (left, right) in enumerate(story(3, 3, 20)):
        put(desk, f"a{number:02}.csv", left)
        put(desk, f"b{number:02}.csv", right)
        lefts, rights = lefts + left, rights + right
        desk.run()
        if number == 1:
            desk.restart()
    finish(desk)
    expected = whole(lefts, rights, WHOLE.format(word, low, high) + f"{more} WHERE a.v <> 1001")
    assert rows_of(desk) == expected
    bill = bills(desk)[0]
    without = sum(each.startswith(NULL) for each in rights) + (0 if word else sum(e.startswith(NULL) for e in lefts))
    assert (bill.totals.rows.total, bill.totals.rows.unselected) == (122, without)
    assert bill.totals.rows.loaded == 122 - without
    assert bill.totals.written == len(expected)
    assert bill.state is not None
    if word:
        assert bill.state.rows == 2  # Of what the end of the story brought; everything before is forgotten.
    assert desk.lading.verify("j").is_clean
    plan = {str(what): str(how) for what, how in desk.sql("EXPLAIN JOB j")}
    longest = ("120 s", "0 s") if not word else ("60 s", "120 s")
    assert plan["kept of a"].endswith(f"until the watermark is {longest[0]} past its event time")
    assert plan["kept of b"].endswith(f"until the watermark is {longest[1]} past its event time")
    assert "joins them with each other and the state" in plan["path"]


@pytest.mark.parametrize(
    ("form", "step"),
    [
        pytest.param(form, step, marks=[] if (form, step) == ("delta", "merge.after") else [pytest.mark.slow])
        for form in NAMES
        for step in IN_BATCHES
    ],
)
def test_a_kill_at_a_step_writes_each_result_once(desk: Desk, kills: None, form: str, step: str) -> None:
    def die(name: str) -> None:
        raise Killed(name)

    skip_without(kind_of(form))
    create(desk, join="LEFT JOIN", form=form)
    put(desk, "a1.csv", [row("x", 0, 1), row("y", 0, 2)])
    put(desk, "b1.csv", [row("x", 30, 11)])
    desk.run()
    put(desk, "a2.csv", [row("end", 3600, 3)])
    put(desk, "b2.csv", [row("x", 60, 12), row("z", 3600, 13)])
    for _ in range(2):
        arm(step, die)
        job_id = desk.lading.job("j").job_id
        with pytest.raises(Killed):
            desk.lading.runner(job_id).run_once()
        disarm_all()
        desk.lading.drop_runner(job_id)
        desk.restart()
    if form == "delta":
        lose_store(desk)
        recover(desk.lading)
        desk.sql("USE shop; RESUME JOB WHERE jobName = 'j'")
    desk.run()
    desk.run()
    assert rows_of(desk) == [("x", 1, 11), ("x", 1, 12), ("y", 2, None)]
    assert bills(desk)[0].totals.rows.loaded == 6
    assert desk.lading.verify("j").is_clean


def test_a_stream_that_says_nothing_of_event_time_holds_the_other_for_the_timeout_only(
    tmp_path: Path, spark: SparkSession
) -> None:
    desk = TimedDesk(tmp_path, spark)
    create(desk, join="LEFT JOIN", properties=f"{WATERMARK}, {MANY_BAD}")
    put(desk, "a1.csv", [row("x", 0, 1), row("y", 0, 2)])
    desk.run()  # There is no file of the other one yet.
    assert bills(desk)[0].totals.rows.loaded == 2
    put(desk, "b1.csv", [row("x", 30, 11), "y,never,12"])
    desk.run()
    desk.clock.behind = -timedelta(minutes=6)
    put(desk, "a2.csv", [row("end", 3600, 3)])
    put(desk, "b2.csv", ["y,never,13"])
    desk.run()
    desk.run()
    assert rows_of(desk) == [("x", 1, 11), ("y", 2, None)]
    assert bills(desk)[0].totals.rows.error == 2
    desk.lading.close()


def test_late_rows_bad_rows_and_results_that_do_not_fit(desk: Desk) -> None:
    properties = f"{WATERMARK}, {MANY_BAD}"
    create(
        desk,
        columns="k STRING NOT NULL, x BIGINT NOT NULL, y BIGINT",
        properties=properties,
    )
    put(desk, "a1.csv", [row("x", 600, 1), row("x", 600, "one"), f"x,{NULL},2", "x,today,3"])
    put(desk, "b1.csv", [row("x", 610, 11), row("x", 620, 12)])
    desk.run()
    put(desk, "a2.csv", [row("x", 500, 4)])
    put(desk, "b2.csv", [row("x", 630, 13)])
    desk.run()
    assert rows_of(desk) == [("x", 1, 11), ("x", 1, 12), ("x", 1, 13)]
    first, second = bills(desk)[1].tally.rows, bills(desk)[0].tally.rows
    # "one" has two results that do not fit; it is one row. Another one comes with the third row of the other stream.
    assert (first.total, first.loaded, first.error) == (6, 3, 3)
    assert (second.total, second.late, second.error) == (2, 1, 1)
    shown = [str(each) for each in desk.sql("SHOW LOAD ERRORS FOR j LIMIT 100")]
    assert any("column x: NULL in a column that is NOT NULL" in each for each in shown)
    assert any("a.at or b.at" in each for each in shown)


def test_a_row_without_a_match_that_does_not_fit_stops_the_job_and_loses_nothing(desk: Desk) -> None:
    create(desk, join="LEFT JOIN", columns="k STRING, x BIGINT, y BIGINT NOT NULL")
    put(desk, "a1.csv", [row("x", 0, 1), row("y", 0, 2)])
    put(desk, "b1.csv", [row("x", 0, 11)])
    desk.run()
    put(desk, "a2.csv", [row("x", 3600, 3)])
    put(desk, "b2.csv", [row("x", 3600, 12)])
    desk.run()
    desk.run()
    assert "does not fit the table (of a row without a match)" in reason(desk)
    text = statement(desk, join="LEFT JOIN", select="a.k, a.v, coalesce(b.v, a.v - a.v)").partition(" DO ")[2]
    desk.sql(f"ALTER JOB j {text}")
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    assert rows_of(desk) == [("x", 1, 11), ("x", 3, 12), ("y", 2, 0)]


def test_moves_need_a_word_about_the_state(desk: Desk) -> None:
    create(desk)
    put(desk, "a1.csv", [row("x", 0, 1)])
    put(desk, "b1.csv", [row("x", 0, 11)])
    desk.run()
    seq = bills(desk)[0].seq
    put(desk, "b2.csv", [row("x", 60, 12)])
    desk.run()
    desk.sql("PAUSE JOB WHERE jobName = 'j'")
    offset = f'\'{{"right": {{"fileName": "{desk.inbox}/b1.csv"}}}}\''
    with pytest.raises(SqlError, match="keeps state, so its position cannot be moved alone"):
        desk.sql(f'ALTER JOB j PROPERTIES("offset"={offset})')
    for text in (
        statement(desk, on="a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 3 MINUTES"),
        statement(desk, select="a.k, a.at, b.v"),
        statement(desk, join="LEFT JOIN"),
    ):
        with pytest.raises(SqlError, match=r"joins and watermark\.column cannot be changed"):
            desk.sql(f"ALTER JOB j {text.partition(' DO ')[2]}")
    desk.sql(f'ALTER JOB j PROPERTIES("state"="COMMIT {seq}")')
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    # What was written since is written again, as the statement says: with the same state.
    assert rows_of(desk) == [("x", 1, 11), ("x", 1, 12), ("x", 1, 12)]
    desk.sql("PAUSE JOB WHERE jobName = 'j'")
    desk.sql(f'ALTER JOB j PROPERTIES("offset"={offset}, "state"="RESET")')
    desk.sql("RESUME JOB WHERE jobName = 'j'")
    desk.run()
    # Nothing of the first stream is known any more.
    assert rows_of(desk) == [("x", 1, 11), ("x", 1, 12), ("x", 1, 12)]
    kept = bills(desk)[0].state
    assert kept is not None
    assert kept.rows == 1


@pytest.mark.slow
def test_a_stream_is_joined_with_files(desk: Desk, kinesis: KinesisServer) -> None:
    stream = Selected(kinesis, desk)
    stream.put(*({"id": 100 + n, "k": "x", "at": at(second)} for n, second in enumerate((10, 20, 7200))))
    put(desk, "a1.csv", [row("x", 0, 1), row("y", 0, 2)])
    desk.sql("CREATE TABLE t (k STRING, x BIGINT, y BIGINT, shard STRING) USING delta")
    desk.sql(
        f"CREATE JOB j PROPERTIES({WATERMARK}) ON STREAMING DO INSERT INTO t SELECT a.k, a.v, b.id, b._shard "
        f'FROM FILE("uri"="{desk.inbox}/a*.csv", {CSV}) AS a JOIN {stream.source()} AS b '
        "ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 2 MINUTES"
    )
    desk.run()
    assert [each[:3] for each in rows_of(desk)] == [("x", 1, 100), ("x", 1, 101)]
    assert all(each[3].startswith("shardId-") for each in rows_of(desk))
    assert set(json.loads(desk.show("CurrentOffset"))) == {"left", "right"}


def test_streams_of_two_kinds_are_joined(desk: Desk, kinesis: KinesisServer, broker: KafkaBroker) -> None:
    stream, topic = Selected(kinesis, desk), f"t{uuid.uuid4().hex[:8]}"
    Topics(broker).create(topic, 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})

    def send(partition: int, *records: tuple[str, int, int]) -> None:
        for key, second, value in records:
            producer.produce(topic, json.dumps({"k": key, "at": at(second), "v": value}), partition=partition)
        assert producer.flush(10) == 0

    send(0, ("7", 0, 1))
    send(1, ("8", 0, 2))
    stream.put({"id": 7, "at": at(60)}, key="one")
    desk.sql("CREATE TABLE t (k STRING, x BIGINT, y BIGINT, place BIGINT) USING delta")
    given = f'"kafka_broker_list"="{broker.bootstrap}", "kafka_topic"="{topic}", "format"="json"'
    desk.sql(
        f'CREATE JOB j PROPERTIES({WATERMARK}, "watermark.idle_timeout"="0") ON STREAMING DO INSERT INTO t '
        f"SELECT a.k, a.v, b.id, a._offset FROM "
        f'KAFKA({given}, "property.kafka_default_offsets"="OFFSET_BEGINNING") AS a LEFT JOIN {stream.source()} AS b '
        "ON a.k = b.id AND a.at BETWEEN b.at - INTERVAL 2 MINUTES AND b.at"
    )
    desk.run()
    assert rows_of(desk) == [("7", 1, 7, 0)]
    for partition in (0, 1):
        send(partition, ("end", 7200, 3))
    stream.put(*({"id": 9, "at": at(7200)} for _ in range(1)), key="one")
    stream.put({"id": 9, "at": at(7200)}, key="two")
    desk.run()
    assert bills(desk)[0].totals.rows.loaded == 7
    assert {name.partition(".")[0] for name in bills(desk)[0].positions.partitions} == {"left", "right"}


def test_the_example_of_the_page_runs(desk: Desk) -> None:
    page = (Path(__file__).parents[2] / "docs" / "joins.md").read_text()
    for name in ("views", "orders"):
        (desk.path / name).mkdir()
        page = page.replace(f"/data/{name}", str(desk.path / name))
    job, change = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)[3:]
    views = ["anna,/home,2026-01-01 12:00:00", "ben,/cart,2026-01-01 12:00:00", "eva,/internal,2026-01-01 12:00:00"]
    end = "2026-01-01 13:00:00"
    (desk.path / "views" / "1.csv").write_text("\n".join(["visitor,page,at", *views, f"end,/end,{end}"]) + "\n")
    orders = ["anna,9.50,2026-01-01 12:09:59", "anna,7.00,2026-01-01 12:10:01", f"none,1,{end}"]
    (desk.path / "orders" / "1.csv").write_text("\n".join(["visitor,amount,at", *orders]) + "\n")
    desk.sql(job)
    desk.run()
    desk.run()
    there = desk.lading.catalog.open_table("shop", "conversions")
    found = sorted((each[:2], str(each[3])) for each in pl.read_delta(there.location).rows())
    assert found == [(("anna", "/home"), "9.50"), (("ben", "/cart"), "None")]
    desk.sql("PAUSE JOB WHERE jobName = 'conversions'")
    desk.sql(change)


def test_a_service_with_nothing_to_read_comes_back_when_a_stream_is_idle(tmp_path: Path, spark: SparkSession) -> None:
    """It looked only whether there is something to read: results came up to a minute late."""
    desk = ClockedDesk(tmp_path, spark)
    idle = f'{WATERMARK}, "watermark.idle_timeout"="10 seconds", "file.settle_seconds"="0"'
    create(desk, join="LEFT JOIN", properties=idle)
    put(desk, "a1.csv", [row("x", 0, 1)])
    put(desk, "b1.csv", [row("y", 0, 2)])
    desk.run()
    desk.clock.sleep(8)
    put(desk, "a2.csv", [row("x", 600, 3)])
    desk.run()
    runner = desk.lading.runner(desk.lading.job("j").job_id)
    runner.run_once()
    assert runner.is_idle()
    desk.clock.sleep(4)
    assert not runner.is_idle()  # The second stream has brought nothing for 12 seconds.
    for _ in range(3):
        runner.run_once()
    assert rows_of(desk) == [("x", 1, None)]
    assert runner.is_idle()
    desk.lading.close()
