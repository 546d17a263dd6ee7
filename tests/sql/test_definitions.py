"""From a statement to what it asks for."""

from __future__ import annotations

import pytest

from lading.errors import NotSupportedError, SqlError
from lading.model.table import PartitionField
from lading.sources.registry import check_load
from lading.sql.statements.definitions import define_routine_load, define_streaming_job
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.statements.tables import CreateTable
from lading.sql.syntax.parse import parse_statement, parse_statements

KAFKA = 'FROM KAFKA("kafka_broker_list"="b", "kafka_topic"="t")'


def job(text: str) -> CreateJob:
    statement = parse_statement(text)
    assert isinstance(statement, CreateJob)
    return statement


def routine(text: str) -> CreateRoutineLoad:
    statement = parse_statement(text)
    assert isinstance(statement, CreateRoutineLoad)
    return statement


def test_a_streaming_job_is_typed() -> None:
    found = define_streaming_job(
        job(
            'CREATE JOB j PROPERTIES("session.enable_strict_cast"="true") ON STREAMING COMMENT "c" DO '
            "INSERT INTO db.t (a, b, c) SELECT s.x, upper(y) AS y2, cast(z as int) + x "
            'FROM S3("uri"="s3://b/k", "format"="csv_with_names") s WHERE s.x > 1'
        )
    )
    assert [column.name for column in found.columns] == ["x", "y2", None]
    texts = [column.expression.text for column in found.columns if column.expression is not None]
    assert texts == ["`x`", "UPPER(`y`)", "TRY_CAST(`z` AS INT) + `x`"]
    assert found.where is not None
    assert (found.where.text, found.where.columns) == ("`x` > 1", ("x",))
    assert (found.target_columns, str(found.table), found.comment) == (("a", "b", "c"), "db.t", "c")


def test_a_star_is_a_star() -> None:
    found = define_streaming_job(
        job('CREATE JOB j ON STREAMING DO INSERT INTO t SELECT * FROM FILE("uri"="/data/*", "format"="json")')
    )
    assert [column.is_star for column in found.columns] == [True]


def test_a_star_of_another_source_is_refused() -> None:
    text = 'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT {}.* FROM S3("uri"="s3://b/k", "format"="json") AS s'
    assert define_streaming_job(job(text.format("S"))).columns[0].is_star
    with pytest.raises(NotSupportedError, match="not columns of the source"):
        define_streaming_job(job(text.format("x")))


def test_a_condition_may_have_many_parts() -> None:
    many = " OR ".join(f"a = {number}" for number in range(1000))
    text = (
        f'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT {"a + " * 300}a FROM S3("uri"="s3://b/k", "format"="json")'
    )
    found = define_streaming_job(job(f"{text} WHERE {many}"))
    assert found.where is not None
    assert found.where.text.count("`a`") == 1000


@pytest.mark.parametrize("depth", [15, 5000])
def test_brackets_in_brackets_give_a_job_or_an_error_of_ours(depth: int) -> None:
    nested = f"{'(' * depth}a{')' * depth}"
    text = f'CREATE JOB j ON STREAMING DO INSERT INTO t SELECT {nested} FROM S3("uri"="s3://b/k", "format"="json")'
    if depth < 100:
        assert define_streaming_job(job(text)).columns[0].expression is not None
    else:
        with pytest.raises(SqlError, match="nested too deeply"):
            job(text)


def test_a_type_in_a_type_in_a_type_is_an_error_of_ours() -> None:
    with pytest.raises(SqlError, match="nested too deeply"):
        parse_statement(f"CREATE TABLE t (a {'array<' * 5000}int{'>' * 5000}) USING delta")


def test_the_number_of_columns_must_fit() -> None:
    statement = job(
        'CREATE JOB j ON STREAMING DO INSERT INTO t (a, b) SELECT x FROM S3("uri"="s3://b/k", "format"="csv")'
    )
    with pytest.raises(SqlError, match="insert into cols should be corresponding to the query output"):
        define_streaming_job(statement)


def test_an_unknown_function_is_underlined_in_the_statement() -> None:
    text = (
        'CREATE JOB j ON STREAMING DO\nINSERT INTO t SELECT a,\n  nosuch(b) FROM S3("uri"="s3://b/k", "format"="csv")'
    )
    with pytest.raises(NotSupportedError) as caught:
        define_streaming_job(job(text))
    assert (caught.value.line, caught.value.column, caught.value.offending) == (3, 3, "nosuch")


@pytest.mark.parametrize(
    ("property_text", "column"), [('"max_interval" = "0"', 64), ('"session.enable_strict_cast"="x"', 64)]
)
def test_a_wrong_property_is_underlined_in_the_statement(property_text: str, column: int) -> None:
    first = 'CREATE JOB i PROPERTIES("max_interval" = "0") ON STREAMING DO '
    text = f"SHOW TABLES; CREATE JOB job_with_a_long_name     PROPERTIES   ({property_text}) ON STREAMING DO\n"
    insert = 'INSERT INTO t SELECT a FROM S3("uri"="s3://b/k", "format"="csv", "s3.secret_key"="sesame")'
    statements = parse_statements(f"{first}{insert};\n{text}{insert}")
    assert isinstance(statements[2], CreateJob)
    with pytest.raises(SqlError) as caught:
        define_streaming_job(statements[2])
    assert (caught.value.line, caught.value.column, caught.value.offending) == (2, column, property_text)


def test_a_wrong_property_of_the_source_is_underlined() -> None:
    with pytest.raises(SqlError) as caught:
        check_load(routine('CREATE ROUTINE LOAD j ON t\nFROM KINESIS("aws.region"="Mars", "kinesis_stream"="s")'))
    assert (caught.value.line, caught.value.column, caught.value.offending) == (2, 14, '"aws.region"="Mars"')


def test_a_routine_load_is_typed() -> None:
    found = define_routine_load(
        routine(
            'CREATE ROUTINE LOAD db.j ON t COLUMNS TERMINATED BY "|", COLUMNS(a, tmp, b = concat(tmp, "x")), '
            f'PRECEDING FILTER a > 0, WHERE b <> "" PROPERTIES("max_batch_rows"="200000") {KAFKA}'
        )
    )
    assert found.properties.csv.column_separator == "|"
    assert found.columns is not None
    assert [(column.name, column.expression is None) for column in found.columns] == [
        ("a", True),
        ("tmp", True),
        ("b", False),
    ]
    assert found.preceding_filter is not None
    assert found.preceding_filter.text == "`a` > 0"


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        (f"CREATE ROUTINE LOAD j {KAFKA}", "many tables is not supported"),
        (f"CREATE ROUTINE LOAD j ON t WITH MERGE {KAFKA}", "needs a DELETE ON clause"),
        (f"CREATE ROUTINE LOAD j ON t WITH MERGE DELETE ON a = 1 {KAFKA}", "only supported in unique tables"),
        (f"CREATE ROUTINE LOAD j ON t WITH DELETE {KAFKA}", "only supported in unique tables"),
        (f"CREATE ROUTINE LOAD j ON t DELETE ON a = 1 {KAFKA}", "not support DELETE ON clause"),
        (f"CREATE ROUTINE LOAD j ON t ORDER BY a {KAFKA}", "only supported in unique tables"),
        (f"CREATE ROUTINE LOAD j ON t PARTITION p {KAFKA}", "Partition p does not exist"),
        ('CREATE ROUTINE LOAD j ON t FROM PULSAR("a"="b")', "PULSAR cannot be the source of a routine load"),
        (f'CREATE ROUTINE LOAD j ON t PROPERTIES("format"="orc") {KAFKA}', "Invalid format type"),
    ],
)
def test_what_would_change_the_result_is_refused(text: str, fragment: str) -> None:
    with pytest.raises(SqlError) as caught:
        check_load(routine(text))
    assert fragment in str(caught.value)


def test_a_table_becomes_a_spec() -> None:
    statement = parse_statement(
        "CREATE TABLE db.t (id BIGINT NOT NULL COMMENT 'key', name VARCHAR(20), at DATETIME) USING iceberg "
        "PARTITIONED BY (days(at), bucket(4, ID)) COMMENT 'c' TBLPROPERTIES ('a'='b')"
    )
    assert isinstance(statement, CreateTable)
    spec = statement.spec
    assert [(column.name, column.type, column.nullable) for column in spec.columns] == [
        ("id", "bigint", False),
        ("name", "string", True),
        ("at", "timestamp_ntz", True),
    ]
    assert spec.partition_by == (
        PartitionField(column="at", transform="day"),
        PartitionField(column="id", transform="bucket[4]"),
    )
    assert spec.properties == {"a": "b", "comment": "c", "lading.length.name": "20", "lading.comment.id": "key"}
