"""A record that kills every worker that reads it, from the statement to the table: named, or put aside."""

from __future__ import annotations

import json
import uuid
from typing import Any

import duckdb
import pytest
from confluent_kafka import Producer

from lading.jobs import pace
from lading.testing.kinesis.server import KinesisServer
from tests.service.conftest import Desk
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics
from tests.support.poison import make_deadly


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else kills workers here."""
    monkeypatch.setattr(pace, "SUSPECT_WAIT_S", 0.1)


TABLE = "CREATE TABLE t (id BIGINT NOT NULL, city VARCHAR(10)) USING delta"


class Load:
    """A stream of records with one among them that kills, and the words to load it."""

    def __init__(self, desk: Desk, source: str) -> None:
        self.desk, self.source = desk, source
        desk.sql(TABLE)

    def create(self, properties: str = "") -> None:
        said = f'PROPERTIES("format"="json"{properties and ", "}{properties})'
        self.desk.sql(f"CREATE ROUTINE LOAD j ON t {said} {self.source}")

    def show(self, column: str) -> Any:
        return self.desk.lading.sql("SHOW ALL ROUTINE LOAD FOR j")[-1].dicts()[-1][column]

    def ids(self) -> list[int]:
        """As another reader sees them."""
        place = self.desk.lading.catalog.open_table("shop", "t").writer_spec().location
        rows = duckdb.sql(f"SELECT id FROM delta_scan('{place}') ORDER BY id") if has_delta() else None
        return [row[0] for row in rows.fetchall()] if rows is not None else self.desk.ids("t")


def has_delta() -> bool:
    """DuckDB reads Delta with an extension, which is not everywhere."""
    try:
        duckdb.sql("LOAD delta")
    except duckdb.Error:
        return False
    return True


def kafka_load(broker: KafkaBroker, desk: Desk, records: int) -> Load:
    name = f"t{uuid.uuid4().hex[:8]}"
    Topics(broker).create(name, 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number in range(records):
        producer.produce(name, json.dumps({"id": number, "city": "essen"}).encode(), partition=number % 2)
    assert producer.flush(10) == 0
    words = {
        "kafka_broker_list": broker.bootstrap,
        "kafka_topic": name,
        "property.kafka_default_offsets": "OFFSET_BEGINNING",
    }
    return Load(desk, "FROM KAFKA(" + ", ".join(f'"{key}"="{value}"' for key, value in words.items()) + ")")


def kinesis_load(server: KinesisServer, desk: Desk, records: int) -> Load:
    name = f"s{uuid.uuid4().hex[:8]}"
    client = server.create_stream(name, 2)
    for number in range(records):
        data = json.dumps({"id": number, "city": "essen"}).encode()
        client.put_record(StreamName=name, Data=data, PartitionKey=str(number))
    words = {
        "aws.region": server.region,
        "kinesis_stream": name,
        "aws.endpoint": server.endpoint,
        "aws.access_key": server.access_key,
        "aws.secret_key": server.secret_key,
        "property.kinesis_default_pos": "TRIM_HORIZON",
    }
    return Load(desk, "FROM KINESIS(" + ", ".join(f'"{key}"="{value}"' for key, value in words.items()) + ")")


def test_a_record_that_kills_its_worker_goes_to_quarantine_and_the_rest_is_loaded(
    broker: KafkaBroker, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = kafka_load(broker, desk, 12)
    make_deadly(monkeypatch, "id", "5")
    load.create('"on_poison_record"="QUARANTINE"')
    desk.run()
    assert (load.show("State"), load.ids()) == ("RUNNING", [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11])
    errors = desk.sql("SHOW LOAD ERRORS FOR shop.j")
    assert len(errors) == 1
    assert "ended 3 workers that read it alone" in str(errors)
    assert '"id": 5' in str(errors), "the record is kept with its position"
    statistic = json.loads(load.show("Statistic"))
    assert (statistic["totalRows"], statistic["loadedRows"], statistic["errorRows"]) == (12, 11, 1)
    assert desk.lading.verify("shop.j").is_clean
    assert '"on_poison_record" = "QUARANTINE"' in str(desk.sql("SHOW CREATE ROUTINE LOAD FOR j"))


@pytest.mark.slow
def test_a_record_that_takes_all_memory_pauses_the_job_which_names_its_position(
    broker: KafkaBroker, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = kafka_load(broker, desk, 12)
    make_deadly(monkeypatch, "id", "5", "memory")
    load.create()
    desk.run()
    assert (load.show("State"), 5 in load.ids()) == ("PAUSED", False)
    reason = load.show("ReasonOfStateChanged")
    assert "partition 1, offset 2 ended 3 workers that read it alone" in reason
    assert "MemoryError" in reason
    desk.sql("PAUSE ROUTINE LOAD FOR j")
    desk.sql('ALTER ROUTINE LOAD FOR j PROPERTIES("on_poison_record"="QUARANTINE")')
    desk.sql("RESUME ROUTINE LOAD FOR j")
    desk.run()
    assert (load.show("State"), load.ids()) == ("RUNNING", [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11])


@pytest.mark.slow
def test_a_record_of_kinesis_that_kills_goes_to_quarantine_by_its_number(
    kinesis: KinesisServer, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = kinesis_load(kinesis, desk, 12)
    make_deadly(monkeypatch, "id", "5")
    load.create('"on_poison_record"="QUARANTINE"')
    for _ in range(3):
        desk.run()
    assert (load.show("State"), load.ids()) == ("RUNNING", [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11])
    assert '"id": 5' in str(desk.sql("SHOW LOAD ERRORS FOR shop.j"))
    assert desk.lading.verify("shop.j").is_clean


@pytest.mark.slow
def test_batches_that_take_more_memory_than_workers_have_are_cut_until_they_fit(
    broker: KafkaBroker, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = kafka_load(broker, desk, 120)
    make_deadly(monkeypatch, "id", "none", "memory", tail=30)
    load.create()
    desk.run()
    assert (load.show("State"), load.ids()) == ("RUNNING", list(range(120)))
    assert json.loads(load.show("Statistic"))["errorRows"] == 0


@pytest.mark.slow
def test_a_row_of_a_file_that_kills_is_named_and_later_put_aside(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.table()
    for number in range(4):
        desk.put_orders(f"{number}.csv", number * 10, 10)
    make_deadly(monkeypatch, "id", "25")
    desk.create()
    desk.run()
    assert (desk.show("Status"), desk.ids()) == ("PAUSED", list(range(20)))
    assert "2.csv, the row at byte 90 ended 3 workers" in desk.show("ErrorMsg")
    desk.sql('PAUSE JOB WHERE jobname = "j"')
    desk.sql('ALTER JOB j PROPERTIES("on_poison_record"="QUARANTINE")')
    desk.sql('RESUME JOB WHERE jobname = "j"')
    desk.run()
    assert (desk.show("Status"), desk.ids()) == ("RUNNING", [number for number in range(40) if number != 25])
    (error,) = desk.sql("SHOW LOAD ERRORS FOR j")
    assert "25,essen,25.50" in str(error)
    assert desk.lading.verify("j").is_clean
