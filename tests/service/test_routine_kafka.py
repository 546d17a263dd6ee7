"""Routine loads from Kafka, end to end on Spark: what a user of Doris expects, and no row lost."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from lading.errors import LadingError
from lading.sources.kafka.source import KafkaSource
from tests.service.conftest import Desk
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics
from tests.support.registry import TestRegistry


class Topic:
    """A topic, and the words to load it."""

    def __init__(self, broker: KafkaBroker, desk: Desk, partitions: int = 4) -> None:
        self.name = f"t{uuid.uuid4().hex[:8]}"
        self.desk = desk
        self.bootstrap = broker.bootstrap
        self.broker = broker
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        self.topics = Topics(broker)
        self.topics.create(self.name, partitions)
        desk.sql("CREATE TABLE t (id BIGINT NOT NULL, city VARCHAR(10), amount DECIMAL(10,2)) USING delta")

    def renew_producer(self) -> None:
        """A producer learns of new partitions only now and then."""
        self._producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def send(self, records: dict[int, list[str]]) -> None:
        for partition, values in records.items():
            for value in values:
                self._producer.produce(self.name, value.encode(), partition=partition, key=f"k{partition}")
        assert self._producer.flush(10) == 0

    def source(self, **more: str) -> str:
        given = {
            "kafka_broker_list": self.bootstrap,
            "kafka_topic": self.name,
            **{name.replace("__", "."): value for name, value in more.items()},
        }
        return "FROM KAFKA(" + ", ".join(f'"{name}"="{value}"' for name, value in given.items()) + ")"

    def create(self, clauses: str = "", properties: str = "", name: str = "j", **more: str) -> None:
        if "kafka_partitions" not in more:
            more.setdefault("property__kafka_default_offsets", "OFFSET_BEGINNING")
        said = f"PROPERTIES({properties})" if properties else ""
        self.desk.sql(f"CREATE ROUTINE LOAD {name} ON t {clauses} {said} {self.source(**more)}")

    def show(self, column: str) -> Any:
        found = self.desk.lading.sql("SHOW ALL ROUTINE LOAD FOR j")[-1].dicts()[-1][column]
        return json.loads(found) if str(found).startswith("{") else found

    def ids(self) -> list[int]:
        return self.desk.ids("t")


@pytest.fixture
def topic(broker: KafkaBroker, desk: Desk) -> Topic:
    return Topic(broker, desk)


def csv(first: int, count: int) -> list[str]:
    return [f"{number},essen,1.50" for number in range(first, first + count)]


def test_records_become_rows_once_and_keep_coming(topic: Topic) -> None:
    topic.send({0: csv(0, 10), 1: csv(10, 5), 3: csv(15, 5)})
    topic.create('COLUMNS TERMINATED BY ","')
    topic.desk.run()
    topic.send({2: csv(20, 3)})
    topic.desk.run()
    topic.desk.run()
    assert topic.ids() == list(range(23))
    assert topic.show("Progress") == {"0": "9", "1": "4", "2": "2", "3": "4"}
    assert topic.show("Lag") == {"0": 0, "1": 0, "2": 0, "3": 0}
    statistic = topic.show("Statistic")
    assert (statistic["totalRows"], statistic["loadedRows"], statistic["committedTaskNum"]) == (23, 23, 2)
    assert topic.desk.lading.verify("shop.j").is_clean
    assert "lag 0 records" in topic.show("OtherMsg")


def test_columns_are_mapped_filtered_and_cast(topic: Topic) -> None:
    topic.send({0: ["7,essen,3,x", "0,oslo,3,x", "8,rom,0,x", "9,a city too long for it,5,x"]})
    topic.create(
        "COLUMNS TERMINATED BY \",\", COLUMNS (id, c, n, ignored, city = concat(upper(c), '@', _partition), "
        "amount = n * 2), PRECEDING FILTER n > 0, WHERE amount > 1 AND id > 0"
    )
    topic.desk.run()
    rows = topic.desk.sql("SELECT id, city, cast(amount AS int) FROM t ORDER BY id")
    assert rows == [(7, "ESSEN@0", 6), (9, "A CITY TOO", 10)]
    statistic = topic.show("Statistic")
    assert (statistic["totalRows"], statistic["unselectedRows"], statistic["errorRows"]) == (4, 2, 0)


def test_json_by_name_and_by_path(topic: Topic) -> None:
    topic.send({1: ['{"id": 1, "city": "a", "more": [1]}', '{"city": null, "id": "2", "amount": 1.25}']})
    topic.create(properties='"format"="json"')
    topic.create("COLUMNS (x, city, id = x + 10)", '"format"="json", "jsonpaths"=\'["$.id", "$.more[0]"]\'', name="k")
    topic.desk.run()
    assert topic.desk.sql("SELECT id, city FROM t ORDER BY id") == [(1, "a"), (2, None), (11, "1"), (12, None)]


def test_a_bad_row_pauses_the_job_and_resume_passes_over_it(topic: Topic) -> None:
    topic.send({0: ["1,a,1", "x,b,1", "3,c,1", "one field"]})
    topic.create('COLUMNS TERMINATED BY ","')
    topic.desk.run()
    assert topic.show("State") == "PAUSED"
    assert "errCode = 102" in topic.show("ReasonOfStateChanged")
    assert topic.ids() == [1, 3]
    assert topic.show("Progress")["0"] == "3"
    assert topic.show("ErrorLogUrls").endswith(".jsonl")
    errors = topic.desk.sql("SHOW LOAD ERRORS FOR shop.j")
    assert len(errors) == 2
    assert "Column count mismatch" in str(errors)
    topic.desk.restart()
    assert topic.show("State") == "PAUSED"
    assert "errCode = 102" in topic.show("ReasonOfStateChanged")
    topic.send({0: csv(4, 2)})
    topic.desk.sql("RESUME ROUTINE LOAD FOR j")
    topic.desk.run()
    assert (topic.show("State"), topic.ids()) == ("RUNNING", [1, 3, 4, 5])
    statistic = topic.show("Statistic")
    assert (statistic["errorRows"], statistic["errorRowsAfterResumed"]) == (2, 0)


def test_strict_mode_makes_values_that_do_not_fit_bad_rows(topic: Topic) -> None:
    topic.send({0: ["1,a,zzz", "2,b,1"]})
    topic.create('COLUMNS TERMINATED BY ","')
    topic.create('COLUMNS TERMINATED BY ","', '"strict_mode"="true", "max_error_number"="5"', name="k")
    topic.desk.run()
    assert sorted(topic.desk.sql("SELECT id, amount IS NULL FROM t")) == [(1, True), (2, False), (2, False)]


def test_every_state_survives_a_restart(topic: Topic) -> None:
    topic.send({0: csv(0, 5)})
    topic.create('COLUMNS TERMINATED BY ","')
    topic.desk.restart()
    assert topic.show("State") == "NEED_SCHEDULE"
    topic.desk.run()
    topic.desk.restart()
    assert (topic.show("State"), topic.show("Progress")["0"]) == ("RUNNING", "4")
    topic.send({0: csv(5, 5)})
    topic.desk.run()
    topic.desk.sql("PAUSE ROUTINE LOAD FOR j")
    topic.desk.restart()
    assert topic.show("State") == "PAUSED"
    topic.send({0: csv(10, 5)})
    topic.desk.run()
    assert topic.ids() == list(range(10))
    topic.desk.sql("RESUME ROUTINE LOAD FOR j")
    topic.desk.run()
    assert topic.ids() == list(range(15))
    topic.desk.sql("STOP ROUTINE LOAD FOR j")
    topic.desk.restart()
    assert topic.show("State") == "STOPPED"
    assert topic.desk.lading.verify("shop.j").is_clean


def test_an_offset_moved_back_loads_rows_again_and_forward_leaves_some_out(topic: Topic) -> None:
    topic.send({0: csv(0, 10)})
    topic.create('COLUMNS TERMINATED BY ","')
    topic.desk.run()
    topic.desk.sql("PAUSE ROUTINE LOAD FOR j")
    topic.desk.sql('ALTER ROUTINE LOAD FOR j FROM KAFKA("kafka_partitions"="0", "kafka_offsets"="8")')
    topic.send({0: csv(10, 4), 1: csv(20, 4)})
    topic.desk.sql('ALTER ROUTINE LOAD FOR j FROM KAFKA("kafka_partitions"="1", "kafka_offsets"="3")')
    topic.desk.sql('ALTER ROUTINE LOAD FOR j WHERE id <> 9 PROPERTIES("max_error_number"="1")')
    topic.desk.restart()
    topic.desk.sql("RESUME ROUTINE LOAD FOR j")
    topic.desk.run()
    assert topic.ids() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 13, 23]
    assert topic.desk.lading.verify("shop.j").is_clean


def test_show_create_makes_a_job_that_goes_on_where_this_one_is(topic: Topic) -> None:
    topic.send({0: csv(0, 5), 1: csv(5, 5)})
    topic.create('COLUMNS TERMINATED BY ",", WHERE id >= 0', '"max_batch_interval"="7"', property__client__id="x")
    topic.desk.run()
    text = str(topic.desk.sql("SHOW CREATE ROUTINE LOAD FOR j")[0][2])
    topic.desk.sql("STOP ROUTINE LOAD FOR j")
    topic.send({0: csv(10, 5), 2: csv(15, 5)})
    topic.desk.sql(text)
    topic.desk.run()
    assert topic.ids() == list(range(20))
    assert len(topic.desk.sql("SHOW ALL ROUTINE LOAD FOR j")) == 2


def test_only_chosen_partitions_are_read(topic: Topic) -> None:
    topic.send({0: csv(0, 5), 1: csv(5, 5)})
    topic.create('COLUMNS TERMINATED BY ","', kafka_partitions="1", kafka_offsets="2")
    topic.desk.run()
    assert topic.ids() == [7, 8, 9]
    with pytest.raises(LadingError, match="custom kafka partition 9"):
        topic.create(name="k", kafka_partitions="9", kafka_offsets="2")


def test_times_are_read_in_the_zone_of_the_job(topic: Topic) -> None:
    topic.desk.sql("CREATE TABLE times (id BIGINT, wall DATETIME, moment TIMESTAMP) USING delta")
    texts = ["2026-01-01 10:00:00", "2026-01-01T10:00:00Z", "2026-01-01 10:00:00.5+02:00", "2026-01-01", "soon"]
    topic.send({0: [f"{number},{text},{text}" for number, text in enumerate(texts)]})
    clauses = 'COLUMNS TERMINATED BY ","'
    for name, zone in (("tokyo", "Asia/Tokyo"), ("plain", "UTC")):
        topic.desk.sql(
            f'CREATE ROUTINE LOAD {name} ON times {clauses}, WHERE id >= 0 PROPERTIES("timezone"="{zone}") '
            + topic.source(property__kafka_default_offsets="OFFSET_BEGINNING")
        )
        topic.desk.lading.run([f"shop.{name}"])
    rows = topic.desk.sql(
        "SELECT id, cast(wall AS string), cast(moment AS string) FROM times ORDER BY id, wall, moment"
    )
    assert rows == [
        (0, "2026-01-01 10:00:00", "2026-01-01 01:00:00"),
        (0, "2026-01-01 10:00:00", "2026-01-01 10:00:00"),
        (1, "2026-01-01 10:00:00", "2026-01-01 10:00:00"),
        (1, "2026-01-01 19:00:00", "2026-01-01 10:00:00"),
        (2, "2026-01-01 08:00:00.5", "2026-01-01 08:00:00.5"),
        (2, "2026-01-01 17:00:00.5", "2026-01-01 08:00:00.5"),
        (3, "2026-01-01 00:00:00", "2025-12-31 15:00:00"),
        (3, "2026-01-01 00:00:00", "2026-01-01 00:00:00"),
        (4, None, None),
        (4, None, None),
    ]


def test_the_statement_of_the_page_for_users_runs(topic: Topic) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "routine-load.md").read_text()
    statement = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)[0]
    topic.desk.sql(
        "CREATE DATABASE sales; CREATE TABLE sales.clicks "
        "(id BIGINT, page STRING, city STRING, seen INT, clicked INT, score BIGINT) USING iceberg"
    )
    topic.send({0: ["1,home,essen,3,1", "2,cart,oslo,4,2"]})
    topic.desk.sql(statement.replace("localhost:9092", topic.bootstrap).replace('"clicks"', f'"{topic.name}"'))
    topic.desk.run()
    assert topic.desk.sql("SELECT id, city, score FROM sales.clicks ORDER BY id") == [
        (1, "essen", 100),
        (2, "oslo", 200),
    ]


def test_a_job_is_cancelled_when_its_table_is_gone(topic: Topic) -> None:
    topic.create('COLUMNS TERMINATED BY ","')
    topic.desk.lading.store.drop_table("shop", "t")
    topic.desk.run()
    assert topic.show("State") == "CANCELLED"
    assert "errCode = 6" in topic.show("ReasonOfStateChanged")


def forget(topic: Topic, partition: int, before: int) -> None:
    """Let the broker delete records, as retention does."""
    admin = topic.broker.admin()
    for future in admin.delete_records([TopicPartition(topic.name, partition, before)]).values():
        future.result(30)


def test_records_that_are_gone_pause_the_job_or_are_written_down(topic: Topic) -> None:
    topic.send({0: csv(0, 10), 1: csv(10, 2)})
    topic.create('COLUMNS TERMINATED BY ","')
    topic.desk.run()
    topic.send({0: csv(20, 10)})
    forget(topic, 0, 15)
    topic.desk.run()
    reason = topic.show("ReasonOfStateChanged")
    assert topic.show("State") == "PAUSED"
    assert all(word in reason for word in ("errCode = 105", "Offset out of range", "consume partition", "10", "15"))
    topic.desk.sql('ALTER ROUTINE LOAD FOR j FROM KAFKA("property.on_data_loss"="CONTINUE")')
    topic.desk.sql("RESUME ROUTINE LOAD FOR j")
    topic.desk.run()
    assert topic.ids() == [*range(12), *range(25, 30)]
    gap = topic.desk.sql("SHOW LOAD GAPS FOR j")[0]
    assert gap[:3] == ("0", "10", "15")


def test_an_offset_beyond_the_end_pauses_the_job(topic: Topic) -> None:
    topic.send({0: csv(0, 3)})
    topic.create('COLUMNS TERMINATED BY ","', kafka_partitions="0", kafka_offsets="7")
    topic.desk.run()
    assert topic.show("State") == "PAUSED"
    assert "is greater than kafka latest offset" in topic.show("ReasonOfStateChanged")


def test_a_partition_that_is_added_is_read_from_its_beginning(topic: Topic) -> None:
    topic.send({0: csv(0, 3)})
    topic.create('COLUMNS TERMINATED BY ","', property__kafka_default_offsets="OFFSET_END")
    topic.desk.run()
    topic.topics.grow(topic.name, 5)
    topic.renew_producer()
    topic.send({4: csv(10, 5), 0: csv(20, 1)})
    topic.desk.run()
    assert topic.ids() == [*range(10, 15), 20]


def test_a_topic_that_was_made_again_stops_the_job(topic: Topic) -> None:
    topic.send({0: csv(0, 3)})
    topic.create('COLUMNS TERMINATED BY ","')
    topic.desk.run()
    topic.topics.delete(topic.name)
    topic.topics.create(topic.name, 4)
    topic.send({0: csv(10, 9)})
    topic.desk.run()
    assert topic.show("State") == "PAUSED"
    assert "deleted and made again" in topic.show("ReasonOfStateChanged")
    assert topic.ids() == [0, 1, 2]


def test_tombstones_are_counted_and_metadata_can_be_loaded(topic: Topic) -> None:
    topic.send({1: ['{"id": 5, "city": "oslo"}'], 2: [""]})
    topic.create("COLUMNS (id, city, amount = _offset + 10 * _partition)", '"format"="json"')
    topic.desk.run()
    rows = topic.desk.lading.catalog.open_table("shop", "t").scan().to_pylist()
    assert [(row["id"], int(row["amount"])) for row in rows] == [(5, 10)]
    statistic = topic.show("Statistic")
    assert (statistic["totalRows"], statistic["unselectedRows"], statistic["errorRows"]) == (2, 1, 0)


def test_avro_with_a_schema_registry(topic: Topic) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    schema = {
        "type": "record",
        "name": "order",
        "fields": [{"name": "id", "type": "long"}, {"name": "city", "type": ["null", "string"]}],
    }
    with TestRegistry() as registry:
        serialize = AvroSerializer(SchemaRegistryClient({"url": registry.url}), json.dumps(schema))
        context = SerializationContext(topic.name, MessageField.VALUE)
        producer = Producer({"bootstrap.servers": topic.bootstrap, "log_level": 0})
        for number in range(4):
            producer.produce(topic.name, serialize({"id": number, "city": "essen"}, context), partition=0)
        producer.produce(topic.name, b"not avro", partition=0)
        assert producer.flush(10) == 0
        more = {"property__schema__registry__url": registry.url}
        topic.create("", '"format"="avro", "max_error_number"="5"', **more)
        topic.desk.run()
        assert topic.ids() == [0, 1, 2, 3]
        assert topic.show("Statistic")["errorRows"] == 1


def test_a_broker_that_is_down_at_create_is_told_and_nothing_is_made(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KafkaSource.__init__, "__kwdefaults__", {"timeout_s": 1.0})
    with pytest.raises(LadingError, match=r"127\.0\.0\.1:9 did not"):
        topic.desk.sql('CREATE ROUTINE LOAD j ON t FROM KAFKA("kafka_broker_list"="127.0.0.1:9", "kafka_topic"="t")')
    assert topic.desk.sql("SHOW ALL ROUTINE LOAD") == []


def test_protobuf_with_a_schema_registry(topic: Topic) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryClient

    from tests.sources.records.test_protobuf import FIELD, field, file_of, message, write

    fields = field(1, "id", FIELD.TYPE_INT64), field(2, "city", FIELD.TYPE_STRING)
    file = file_of("clicks.proto", message("Click", *fields))
    with TestRegistry() as registry:
        client = SchemaRegistryClient({"url": registry.url})
        producer = Producer({"bootstrap.servers": topic.bootstrap, "log_level": 0})
        for number in range(1, 5):
            producer.produce(topic.name, write(client, file, "Click", id=number, city="essen"), partition=0)
        producer.produce(topic.name, b"not protobuf", partition=0)
        assert producer.flush(10) == 0
        more = {"property__schema__registry__url": registry.url}
        topic.create("", '"format"="protobuf", "max_error_number"="5"', **more)
        topic.desk.run()
        assert topic.ids() == [1, 2, 3, 4]
        assert topic.show("Statistic")["errorRows"] == 1
