"""ALTER, applied."""

from __future__ import annotations

import pytest

from lading.errors import SqlError
from lading.sources.registry import stream_kind
from lading.sql.statements.alter import AlteredRoutineLoad, alter_routine_load, alter_streaming_job
from lading.sql.statements.jobs import AlterJob, AlterRoutineLoad, CreateJob, CreateRoutineLoad
from lading.sql.syntax.parse import parse_statement

INSERT = 'INSERT INTO db.t SELECT a FROM S3("uri"="s3://b/k", "format"="csv", "s3.access_key"="1", "s3.secret_key"="2")'
JOB = f'CREATE JOB j PROPERTIES("max_interval"="5") ON STREAMING DO {INSERT}'


def alter_job(change: str, old: str = JOB, db: str | None = None) -> CreateJob:
    created, alter = parse_statement(old), parse_statement(f"ALTER JOB j {change}")
    assert isinstance(created, CreateJob)
    assert isinstance(alter, AlterJob)
    return alter_streaming_job(created, alter, current_db=db)


def test_properties_of_a_job_merge() -> None:
    new = alter_job('PROPERTIES("s3.max_batch_files"="7")')
    assert new.properties == {"max_interval": "5", "s3.max_batch_files": "7"}


def test_the_same_offset_again_is_a_change() -> None:
    offset = 'PROPERTIES("offset"=\'{"fileName":"a"}\')'
    assert alter_job(offset, JOB.replace('PROPERTIES("max_interval"="5")', offset)).properties["offset"]


def test_the_select_and_credentials_may_change() -> None:
    new = alter_job(INSERT.replace("SELECT a", "SELECT upper(a)").replace('"1"', '"3"'))
    assert new.insert.items[0].expression.text == "upper(a)"
    assert new.insert.source.properties["s3.access_key"] == "3"


def test_the_same_table_may_be_written_with_and_without_its_database() -> None:
    assert alter_job(INSERT.replace("db.t", "t").replace("SELECT a", "SELECT b"), db="db").insert.table.name == "t"


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        (INSERT, "No properties or sql changed"),
        ('PROPERTIES("max_interval"="5")', "No properties or sql changed"),
        (INSERT.replace("db.t", "db.u"), "target table cannot be modified"),
        (INSERT.replace("s3://b/k", "s3://b/l"), "uri property cannot be modified"),
        ('INSERT INTO db.t SELECT a FROM FILE("uri"="/k", "format"="csv")', "source type cannot be modified"),
        ('PROPERTIES("max_interval"="0")', "max_interval should > 1"),
        ('PROPERTIES("nosuch"="0")', "Invalid properties: [nosuch]"),
        ('PROPERTIES("offset"="x")', "Failed to initialize offset"),
    ],
)
def test_what_a_job_cannot_change_is_refused(change: str, fragment: str) -> None:
    with pytest.raises(SqlError) as caught:
        alter_job(change)
    assert fragment in str(caught.value)


KAFKA = (
    'CREATE ROUTINE LOAD db.j ON t WHERE a = 1 PROPERTIES("max_batch_rows"="200000") FROM KAFKA('
    '"kafka_broker_list"="b", "kafka_topic"="t", "kafka_partitions"="0,1", "kafka_offsets"="1,2", '
    '"property.client.rack"="1")'
)
KINESIS = (
    'CREATE ROUTINE LOAD j ON t FROM KINESIS("aws.region"="eu-west-1", "kinesis_stream"="s", '
    '"kinesis_shards"="s0,s1", "kinesis_shards_pos"="LATEST,7", "kinesis_endpoint"="http://a")'
)


def alter_routine(
    change: str, old: str = KAFKA, consumed: tuple[str, ...] = ("0", "1", "s0", "s1")
) -> AlteredRoutineLoad:
    created, alter = parse_statement(old), parse_statement(f"ALTER ROUTINE LOAD FOR j {change}")
    assert isinstance(created, CreateRoutineLoad)
    assert isinstance(alter, AlterRoutineLoad)
    return alter_routine_load(created, alter, stream_kind(created.source.name), consumed=consumed)


def test_clauses_replace_and_properties_merge() -> None:
    new = alter_routine('COLUMNS(a, b = a), WHERE b = 2 PROPERTIES("strict_mode"="true")').statement
    assert new.clauses.where is not None
    assert new.clauses.where.text == "b = 2"
    assert new.properties == {"max_batch_rows": "200000", "strict_mode": "true"}
    kept = alter_routine('PROPERTIES("strict_mode"="true")').statement
    assert kept.clauses.where is not None
    assert kept.clauses.where.text == "a = 1"


def test_offsets_of_kafka_are_moves() -> None:
    found = alter_routine('FROM KAFKA("kafka_partitions"="1", "kafka_offsets"="99", "property.client.rack"="2")')
    assert found.moves == {"1": "99"}
    assert not found.is_new_source
    source = found.statement.source.properties
    assert (source["kafka_partitions"], source["kafka_offsets"], source["property.client.rack"]) == ("0,1", "1,2", "2")


def test_partitions_of_kafka_may_be_moved_to_the_default() -> None:
    found = alter_routine('FROM KAFKA("kafka_partitions"="0", "property.kafka_default_offsets"="OFFSET_BEGINNING")')
    assert found.moves == {"0": "OFFSET_BEGINNING"}
    assert found.statement.source.properties["property.kafka_default_offsets"] == "OFFSET_BEGINNING"


def test_another_topic_forgets_positions() -> None:
    found = alter_routine('FROM KAFKA("kafka_topic"="u")')
    assert found.is_new_source
    assert found.moves == {}
    assert set(found.statement.source.properties) == {"kafka_broker_list", "kafka_topic", "property.client.rack"}


def test_the_type_after_from_is_not_looked_at() -> None:
    assert alter_routine('FROM PULSAR("kafka_broker_list"="c")').statement.source.name == "KAFKA"


def test_shards_of_kinesis_are_moved_and_become_the_only_ones() -> None:
    found = alter_routine('FROM KINESIS("kinesis_shards"="s1", "kinesis_shards_pos"="TRIM_HORIZON")', KINESIS)
    assert found.moves == {"s1": "TRIM_HORIZON"}
    source = found.statement.source.properties
    assert source["kinesis_shards"] == "s1"
    assert "kinesis_shards_pos" not in source


def test_another_stream_forgets_shards() -> None:
    found = alter_routine('FROM KINESIS("kinesis_stream"="z", "aws.endpoint"="http://b")', KINESIS)
    assert found.is_new_source
    assert found.statement.source.properties == {
        "aws.region": "eu-west-1",
        "kinesis_stream": "z",
        "aws.endpoint": "http://b",
    }


@pytest.mark.parametrize(
    ("change", "old", "fragment"),
    [
        ('PROPERTIES("format"="json")', KAFKA, "format is invalid property"),
        ('PROPERTIES("exec_mem_limit"="1")', KAFKA, "exec_mem_limit is invalid property"),
        ('PROPERTIES("max_batch_rows"="1")', KAFKA, "max_batch_rows should > 200000"),
        ('FROM KAFKA("kafka_partitions"="7", "kafka_offsets"="1")', KAFKA, "is not in the consumed partitions"),
        ('FROM KAFKA("kafka_partitions"="0")', KAFKA, "Must set offset or default offset with partition property"),
        ('FROM KAFKA("nosuch"="0")', KAFKA, "is invalid kafka property"),
        (
            'FROM KINESIS("kinesis_shards"="s9", "kinesis_shards_pos"="LATEST")',
            KINESIS,
            "is not in the consumed shards",
        ),
        ("DELETE ON a = 1", KAFKA, "not support DELETE ON clause"),
    ],
)
def test_what_a_routine_load_cannot_change_is_refused(change: str, old: str, fragment: str) -> None:
    with pytest.raises(SqlError) as caught:
        alter_routine(change, old)
    assert fragment in str(caught.value)
