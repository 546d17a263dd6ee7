"""`*` means the same for every format: by place it swaps no columns, and BY NAME it fills those of its names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from lading.errors import SqlError
from tests.service.conftest import Desk
from tests.service.test_routine_kafka import Topic, topic
from tests.service.vector_rig import VectorDesk, vector_desk
from tests.sources.records.test_protobuf import FIELD, field, file_of, message, write
from tests.support.registry import TestRegistry

__all__ = ["topic", "vector_desk"]

ORDERED = ("csv_with_names", "csv_with_names_and_types", "parquet", "orc")
FORMATS = (*ORDERED, "json")
TYPES = {"id": pa.int64(), "city": pa.string(), "amount": pa.decimal128(10, 2), "more": pa.string()}
VALUES: dict[str, Sequence[Any]] = {"id": [1, 2], "city": ["essen", "ulm"], "amount": [1.5, 2.5], "more": ["x", "y"]}
FIRST, SECOND = (1, "essen", Decimal("1.50")), (2, "ulm", Decimal("2.50"))
WITHOUT_CITY = [(1, None, FIRST[2]), (2, None, SECOND[2])]


def put(path: Path, form: str, names: Sequence[str]) -> None:
    """Two rows with these columns, as programs of others write them."""
    rows = [[VALUES[name][row] for name in names] for row in range(2)]
    if form.startswith("csv"):
        heads = [",".join(names)] if form != "csv" else []
        heads += [",".join("string" for _ in names)] if form.endswith("types") else []
        path.write_text("\n".join([*heads, *(",".join(map(str, row)) for row in rows)]) + "\n")
    elif form == "json":
        path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    else:
        found = pa.table({name: pa.array(VALUES[name]).cast(TYPES[name]) for name in names})
        if form == "parquet":
            pq.write_table(found, path)
        else:
            paorc.write_table(found, path)


def create(desk: Desk, form: str, names: Sequence[str], insert: str) -> None:
    desk.table()
    put(desk.inbox / "a", form, names)
    desk.sql(
        f"CREATE JOB j ON STREAMING DO INSERT INTO orders {insert} "
        f'FROM FILE("uri"="{desk.inbox}/*", "format"="{form}", "column_separator"=",")'
    )


def rows_of(desk: Desk, name: str = "orders") -> list[tuple[Any, ...]]:
    """As somebody else reads the table."""
    return sorted(pl.read_delta(desk.lading.catalog.open_table("shop", name).location.removeprefix("file://")).rows())


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (("id", "city", "amount"), [FIRST, SECOND]),
        (("amount", "id", "city"), [FIRST, SECOND]),
        (("more", "amount", "id", "city"), [FIRST, SECOND]),
        (("amount", "more", "id"), WITHOUT_CITY),
    ],
    ids=["same", "moved", "more", "fewer"],
)
def test_by_name_a_star_fills_the_columns_of_its_names(
    vector_desk: VectorDesk, form: str, names: Sequence[str], wanted: list[Any]
) -> None:
    create(vector_desk, form, names, "BY NAME SELECT *")
    vector_desk.run()
    assert rows_of(vector_desk) == wanted


@pytest.mark.parametrize("form", [*FORMATS, "csv"])
def test_a_star_by_place_fills_a_table_of_the_same_columns(vector_desk: VectorDesk, form: str) -> None:
    create(vector_desk, form, ("id", "city", "amount"), "SELECT *")
    vector_desk.run()
    assert rows_of(vector_desk) == [FIRST, SECOND]


@pytest.mark.parametrize("form", ORDERED)
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("amount", "id", "city"), "by place, and the source has them in another order: amount, id, city"),
        (("id", "city", "amount", "more"), "3 columns are to be filled and 4 are selected"),
        (("id", "amount"), "3 columns are to be filled and 2 are selected"),
    ],
    ids=["moved", "more", "fewer"],
)
def test_a_star_by_place_is_refused_in_the_same_words_where_it_does_not_fit(
    vector_desk: VectorDesk, form: str, names: Sequence[str], said: str
) -> None:
    with pytest.raises(SqlError, match=said) as refused:
        create(vector_desk, form, names, "SELECT *")
    assert "INSERT INTO t BY NAME SELECT" in refused.value.todo
    assert vector_desk.sql("SHOW JOBS") == []


def test_fields_of_json_have_no_order_and_a_star_swaps_none(vector_desk: VectorDesk) -> None:
    create(vector_desk, "json", ("more", "amount", "id", "city"), "SELECT *")
    vector_desk.run()
    assert rows_of(vector_desk) == [FIRST, SECOND]


def test_a_star_over_a_topic_means_the_same_for_its_formats(topic: Topic) -> None:
    """JSON, CSV whose columns the job names, Avro and Protobuf of a registry."""
    desk = topic.desk
    fields = [{"name": "amount", "type": "double"}, {"name": "more", "type": "string"}, {"name": "id", "type": "long"}]
    schema = {"type": "record", "name": "o", "fields": [*fields, {"name": "city", "type": "string"}]}
    proto = file_of(
        "orders.proto",
        message(
            "Order",
            field(1, "amount", FIELD.TYPE_DOUBLE),
            field(2, "more", FIELD.TYPE_STRING),
            field(3, "id", FIELD.TYPE_INT64),
            field(4, "city", FIELD.TYPE_STRING),
        ),
    )
    record = {"amount": 1.5, "more": "x", "id": 1, "city": "essen"}
    with TestRegistry() as registry:
        client = SchemaRegistryClient({"url": registry.url})
        avro = AvroSerializer(client, json.dumps(schema))
        values = {
            "json": json.dumps(record).encode(),
            "csv": b"1.5,x,1,essen",
            "avro": avro(record, SerializationContext(topic.name, MessageField.VALUE)),
            "protobuf": write(client, proto, "Order", **record),
        }
        producer = Producer({"bootstrap.servers": topic.bootstrap, "log_level": 0})
        for number, value in enumerate(values.values()):
            producer.produce(topic.name, value, partition=number)
        assert producer.flush(10) == 0
        for number, form in enumerate(values):
            more = {"columns": "amount, more, id, city", "column_separator": ","} if form == "csv" else {}
            if form in ("avro", "protobuf"):
                more = {"property.schema.registry.url": registry.url}
            source = topic.source(kafka_partitions=str(number), kafka_offsets="OFFSET_BEGINNING", format=form, **more)
            desk.sql(f"CREATE TABLE {form}_t (id BIGINT, city STRING, amount DECIMAL(10,2)) USING delta")
            desk.sql(f"CREATE JOB {form} ON STREAMING DO INSERT INTO {form}_t BY NAME SELECT * {source}")
        desk.run()
        assert [rows_of(desk, f"{form}_t") for form in values] == [[FIRST]] * len(values)
