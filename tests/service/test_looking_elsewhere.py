"""A look at buckets and at topics with a schema registry, before anything is loaded. No Spark is started."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import boto3
import polars as pl
import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from lading.errors import ConfigError, LadingError
from lading.service.facade import Lading
from lading.testing.kinesis.server import KinesisServer
from tests.console.local import LocalLading
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import Topics
from tests.support.registry import TestRegistry
from tests.tables.s3_server import S3Server

SCHEMA = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "city", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
    ],
}
COLUMNS = [("id", "bigint"), ("city", "string"), ("price", "decimal(10,2)"), ("at", "timestamp")]


@pytest.fixture
def lading(tmp_path: Path) -> Iterator[Lading]:
    with LocalLading(tmp_path / "home") as made:
        yield made


def test_files_of_a_bucket_are_seen_and_made_a_table(lading: Lading, s3: S3Server) -> None:
    bucket, keys = s3.make_bucket(), s3.options
    client = boto3.client(
        "s3",
        endpoint_url=s3.endpoint,
        region_name="us-east-1",
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
    )
    reach = (
        f'"s3.endpoint" = "{s3.endpoint}", "s3.region" = "us-east-1", "s3.access_key" = "{keys.access_key}", '
        f'"s3.secret_key" = "{keys.secret_key}", "use_path_style" = "true"'
    )

    def source(place: str) -> str:
        return f'S3("uri" = "s3://{bucket}/{place}", {reach})'

    client.put_object(Bucket=bucket, Key="in/a.csv", Body=b"id;city;day\n1;essen;2026-01-02\n2;ulm;2026-01-03\n")
    found = lading.sql(f"DESCRIBE FROM {source('in/*.csv')}")[0].rows
    assert [row[:2] for row in found[:3]] == [("id", "bigint"), ("city", "string"), ("day", "date")]
    assert ("(column_separator)", "property", "", ";") in found
    rows = lading.sql(f"SELECT * FROM {source('in/*.csv')} LIMIT 1")[0]
    assert (rows.columns, rows.rows) == (("id", "city", "day"), (("1", "essen", "2026-01-02"),))
    lading.sql(f"CREATE TABLE t USING delta AS SCHEMA OF {source('in/*.csv')}")
    assert [row[:2] for row in lading.sql("DESCRIBE t")[0].rows] == [row[:2] for row in found[:3]]
    with pytest.raises(ConfigError, match="has nothing yet"):
        lading.sql(f"CREATE TABLE u USING delta AS SCHEMA OF {source('nothing/*.csv')}")
    with pytest.raises(LadingError) as caught:
        lading.sql(f"SELECT * FROM {source('in/*.csv').replace(bucket, 'no-such-bucket')} LIMIT 1")
    assert str(keys.secret_key) not in str(caught.value)
    assert list(lading.sql("SHOW TABLES")[0].rows) == [("t",)]
    before = sorted(each["Key"] for each in client.list_objects_v2(Bucket=bucket)["Contents"])
    settings = lading.store.list_settings()
    told = lading.sql(
        f"EXPLAIN CREATE JOB j ON STREAMING DO CREATE TABLE IF NOT EXISTS u USING delta LOCATION 's3://{bucket}/u' "
        f"TBLPROPERTIES ({reach.replace(' = ', '=')}) INSERT INTO u SELECT id, city, day FROM "
        + source("in/*.csv").replace(reach, f'{reach}, "format" = "csv_with_names", "column_separator" = ";"')
    )[0].rows
    assert ("loaded", "2") in told
    assert f"LOCATION 's3://{bucket}/u'" in str(told[0][1])
    assert str(keys.secret_key) not in str(told)
    assert sorted(each["Key"] for each in client.list_objects_v2(Bucket=bucket)["Contents"]) == before
    assert lading.store.list_settings() == settings


def test_a_table_has_the_columns_of_the_registry_and_not_those_of_the_first_records(
    lading: Lading, broker: KafkaBroker
) -> None:
    topic = f"t{uuid.uuid4().hex[:8]}"
    Topics(broker).create(topic, 1)
    with TestRegistry() as registry:
        registry.add(f"{topic}-value", json.dumps(SCHEMA))
        source = (
            f'KAFKA("kafka_broker_list" = "{broker.bootstrap}", "kafka_topic" = "{topic}", "format" = "avro", '
            f'"property.schema.registry.url" = "{registry.url}", '
            '"property.kafka_default_offsets" = "OFFSET_BEGINNING")'
        )
        # Nothing was sent yet, and the columns are known.
        lading.sql(f"CREATE TABLE t USING delta AS SCHEMA OF {source}")
        assert [row[:2] for row in lading.sql("DESCRIBE t")[0].rows] == COLUMNS
        serialize = AvroSerializer(SchemaRegistryClient({"url": registry.url}), json.dumps(SCHEMA))
        context = SerializationContext(topic, MessageField.VALUE)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        producer.produce(topic, serialize({"id": 1, "city": None, "price": Decimal("2.50"), "at": None}, context))
        assert producer.flush(10) == 0
        # What a record happens to lack is there all the same.
        assert [row[:2] for row in lading.sql(f"DESCRIBE FROM {source}")[0].rows] == COLUMNS
        ((number, city, price, at),) = lading.sql(f"SELECT * FROM {source} LIMIT 5")[0].rows
        assert (number, city, float(str(price)), at) == (1, None, 2.5, None)
        lading.sql(
            "CREATE JOB j ON STREAMING DO CREATE TABLE IF NOT EXISTS u USING delta "
            f"INSERT INTO u SELECT * FROM {source}"
        )
        assert [row[:2] for row in lading.sql("DESCRIBE u")[0].rows] == COLUMNS
        place = lading.catalog.entry("default", "u").location
        assert pl.read_delta(place).columns == [name for name, _ in COLUMNS]


def test_a_stream_of_kinesis_is_seen_from_its_beginning(lading: Lading, kinesis: KinesisServer) -> None:
    stream = f"s{uuid.uuid4().hex[:8]}"
    client = kinesis.create_stream(stream, 1)
    for number in (1, 2):
        data = json.dumps({"id": number, "city": "essen", "tags": ["a"]}).encode()
        client.put_record(StreamName=stream, Data=data, PartitionKey="k")
    source = (
        f'KINESIS("aws.region" = "{kinesis.region}", "aws.endpoint" = "{kinesis.endpoint}", '
        f'"kinesis_stream" = "{stream}", '
        f'"aws.access_key" = "{kinesis.access_key}", "aws.secret_key" = "{kinesis.secret_key}", "format" = "json")'
    )
    found = lading.sql(f"DESCRIBE FROM {source}")[0].rows
    assert [row[:2] for row in found] == [("id", "bigint"), ("city", "string"), ("tags", "string")]
    rows = lading.sql(f"SELECT * FROM {source} LIMIT 5")[0].rows
    assert rows == ((1, "essen", '["a"]'), (2, "essen", '["a"]'))
    lading.sql("CREATE TABLE t (id BIGINT, city VARCHAR(3)) USING delta")
    beginning = source.replace('"format"', '"property.kinesis_default_pos" = "TRIM_HORIZON", "format"')
    assert tried(lading, f"CREATE JOB j ON STREAMING DO INSERT INTO t SELECT id, city FROM {beginning}") == {
        "rows": "2 read",
        "loaded": "0",
        "bad": "2",
    }


def tried(lading: Lading, statement: str) -> dict[str, str]:
    """What becomes of the first rows, as EXPLAIN says it; nothing is made."""
    told = dict(lading.sql(f"EXPLAIN {statement}")[0].rows)
    assert list(lading.sql("SHOW JOBS")[0].rows) == []
    assert list(lading.sql("SHOW ROUTINE LOAD")[0].rows) == []
    return {str(what): str(told[what]) for what in ("rows", "loaded", "bad")}


def test_a_load_from_a_topic_is_tried_on_its_first_records(lading: Lading, broker: KafkaBroker) -> None:
    topic = f"t{uuid.uuid4().hex[:8]}"
    Topics(broker).create(topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for text in ('{"id": 1, "city": "ulm"}', '{"id": "one", "city": "ulm"}', '{"id": 3, "city": "rom"}', "no json"):
        producer.produce(topic, text)
    assert producer.flush(10) == 0
    lading.sql("CREATE TABLE t (id BIGINT, city VARCHAR(3)) USING delta")
    reach = (
        f'"kafka_broker_list" = "{broker.bootstrap}", "kafka_topic" = "{topic}", '
        '"property.kafka_default_offsets" = "OFFSET_BEGINNING"'
    )
    wanted = {"rows": "4 read", "loaded": "2", "bad": "2"}
    select = f'INSERT INTO t SELECT id, lower(city) FROM KAFKA({reach}, "format" = "json")'
    assert tried(lading, f"CREATE JOB j ON STREAMING DO {select}") == wanted
    routine = f'CREATE ROUTINE LOAD r ON t PROPERTIES("format" = "json", "strict_mode" = "true") FROM KAFKA({reach})'
    assert tried(lading, routine) == wanted
