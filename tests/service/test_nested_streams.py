"""Nested values of records: JSON, Avro and Protobuf from Kafka into nested columns, bad ones among them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from deltalake import DeltaTable

from tests.service.test_routine_kafka import Topic, topic
from tests.sources.records.test_protobuf import FIELD, field, file_of, message, write
from tests.support.registry import TestRegistry

__all__ = ["topic"]

LINES = "id BIGINT NOT NULL, who STRUCT<name:STRING, tags:ARRAY<STRING>>, lines ARRAY<STRUCT<price:DECIMAL(24,4)>>"
KEPT = '"strict_mode"="true", "max_error_number"="5"'


def rows(topic: Topic, table: str) -> list[dict[str, Any]]:
    location = topic.desk.lading.catalog.open_table("shop", table).location
    found: list[dict[str, Any]] = DeltaTable(location).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def test_nested_records_fill_nested_columns(topic: Topic) -> None:
    desk = topic.desk
    desk.sql(f"CREATE TABLE n ({LINES}, name STRING, price DECIMAL(24,4)) USING delta")
    topic.send(
        {
            0: ['{"id":1,"who":{"name":"ann","tags":["a"]},"lines":[{"price":12345678901234567890.1234}]}', '{"id":2}'],
            1: ['{"id":3,"lines":[{"price":"dear"}]}', '{"id":4,"who":["x"]}', '{"id":5,"who":{"name":"no"}}'],
        }
    )
    desk.sql(
        f"CREATE ROUTINE LOAD j ON n COLUMNS (id, who, lines, name = who.name, price = lines[1].price), "
        f'WHERE who.name IS NULL OR name <> \'no\' PROPERTIES({KEPT}, "format"="json") '
        f"{topic.source(property__kafka_default_offsets='OFFSET_BEGINNING')}"
    )
    desk.run()
    price = Decimal("12345678901234567890.1234")
    first = {"who": {"name": "ann", "tags": ["a"]}, "lines": [{"price": price}], "name": "ann", "price": price}
    assert rows(topic, "n") == [{"id": 1, **first}, {"id": 2, **dict.fromkeys(first)}]
    statistic = topic.show("Statistic")
    assert (statistic["totalRows"], statistic["errorRows"], statistic["unselectedRows"]) == (5, 2, 1)
    assert {str(row[3]) for row in desk.sql("SHOW LOAD ERRORS FOR j")} == {
        "column price: cannot read 'dear' as decimal(24,4)",
        "column who: cannot read '[\"x\"]' as struct",
    }


def test_nested_avro_and_protobuf(topic: Topic) -> None:
    desk = topic.desk
    desk.sql(
        f"CREATE TABLE a ({LINES}) USING delta; "
        "CREATE TABLE p (id BIGINT, m MAP<STRING,INT>, l ARRAY<BIGINT>) USING delta"
    )
    who = {"type": "record", "name": "w", "fields": [{"name": "name", "type": "string"}]}
    line = {"type": "record", "name": "l", "fields": [{"name": "price", "type": "double"}]}
    schema = {
        "type": "record",
        "name": "o",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "who", "type": who},
            {"name": "lines", "type": {"type": "array", "items": line}},
        ],
    }
    entry = message("MEntry", field(1, "key", FIELD.TYPE_STRING), field(2, "value", FIELD.TYPE_INT32))
    entry.options.map_entry = True
    click = message(
        "Click",
        field(1, "id", FIELD.TYPE_INT64),
        field(2, "m", FIELD.TYPE_MESSAGE, type_name=".shop.Click.MEntry", label=FIELD.LABEL_REPEATED),
        field(3, "l", FIELD.TYPE_INT64, label=FIELD.LABEL_REPEATED),
    )
    click.nested_type.append(entry)
    file = file_of("clicks.proto", click)
    with TestRegistry() as registry:
        client = SchemaRegistryClient({"url": registry.url})
        producer = Producer({"bootstrap.servers": topic.bootstrap, "log_level": 0})
        serialize = AvroSerializer(client, json.dumps(schema))
        context = SerializationContext(topic.name, MessageField.VALUE)
        value = serialize({"id": 1, "who": {"name": "ann"}, "lines": [{"price": 1.5}]}, context)
        producer.produce(topic.name, value, partition=0)
        producer.produce(topic.name, write(client, file, "Click", id=2, m={"k": 3}, l=[2**60]), partition=1)
        assert producer.flush(10) == 0
        for number, (table, form) in enumerate((("a", "avro"), ("p", "protobuf"))):
            source = topic.source(
                kafka_partitions=str(number),
                kafka_offsets="OFFSET_BEGINNING",
                property__schema__registry__url=registry.url,
            )
            desk.sql(f'CREATE ROUTINE LOAD {form} ON {table} PROPERTIES("format"="{form}", {KEPT}) {source}')
        desk.run()
    wanted = {"id": 1, "who": {"name": "ann", "tags": None}, "lines": [{"price": Decimal("1.5000")}]}
    assert rows(topic, "a") == [wanted]
    assert rows(topic, "p") == [{"id": 2, "m": [("k", 3)], "l": [2**60]}]
