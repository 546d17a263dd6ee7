"""What KAFKA(…) and KINESIS(…) in FROM of a job may say, and what is refused before anybody is asked."""

from __future__ import annotations

import pytest

from lading.errors import SqlError
from lading.sources.registry import check_load
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.syntax.parse import parse_statement

KAFKA = '"kafka_broker_list"="b:9092", "kafka_topic"="clicks"'
KINESIS = '"aws.region"="eu-west-1", "kinesis_stream"="clicks"'


def check(text: str) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, CreateJob | CreateRoutineLoad)
    check_load(statement)


def job(source: str, properties: str = "") -> str:
    said = f"PROPERTIES({properties})" if properties else ""
    return f"CREATE JOB j {said} ON STREAMING DO INSERT INTO t SELECT a, b FROM {source}"


@pytest.mark.parametrize(
    "text",
    [
        job(f'KAFKA({KAFKA}, "format"="json")'),
        job(
            f'KAFKA({KAFKA}, "format"="json", "columns"="a, b", "jsonpaths"=\'["$.a", "$.b.c"]\')', "'max_interval'='5'"
        ),
        job(f'KINESIS({KINESIS}, "format"="csv", "columns"="a,b", "column_separator"=",")', "'max_batch_rows'='100'"),
        job(f'KAFKA({KAFKA}, "format"="avro", "property.schema.registry.url"="http://r:8081")'),
    ],
)
def test_a_stream_can_be_selected_from(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (job(f"KAFKA({KAFKA})"), "format is a required property"),
        (job(f'KAFKA({KAFKA}, "format"="parquet")'), "Invalid format type"),
        (job(f'KAFKA({KAFKA}, "format"="csv")'), "columns is a required property for records of csv"),
        (
            job(f"KAFKA({KAFKA}, 'format'='json', 'jsonpaths'='[\"$.a\"]')"),
            "columns is a required property for jsonpaths",
        ),
        (
            job(f"KAFKA({KAFKA}, 'format'='json', 'columns'='a,b', 'jsonpaths'='[\"$.a\"]')"),
            "1 jsonpaths for 2 columns",
        ),
        (job(f'KAFKA({KAFKA}, "format"="json", "columns"="a,A")'), "has a name twice"),
        (job(f'KAFKA({KAFKA}, "format"="json", "columns"="a,_key")'), "columns names _key"),
        (job(f'KAFKA({KAFKA}, "format"="avro")'), "property.schema.registry.url is a required property"),
        (job(f'KINESIS({KINESIS}, "format"="avro")'), "Invalid format type"),
        (job(f'KAFKA({KAFKA}, "format"="json", "uri"="x")'), "uri is invalid kafka property"),
        (job(f'KINESIS({KINESIS}, "format"="json", "formt"="x")'), "formt is invalid Kinesis property"),
        (job(f'KAFKA({KAFKA}, "format"="json")', "'s3.max_batch_files'='1'"), "is for jobs that load files"),
        (
            job(f'KAFKA({KAFKA}, "format"="json")', "'offset'='{\"fileName\":\"a\"}'"),
            "offset is for jobs that load files",
        ),
        (job('FILE("uri"="a", "format"="json")', "'max_batch_rows'='100'"), "is for jobs that read a stream"),
        (f'CREATE ROUTINE LOAD d.j ON t FROM KAFKA({KAFKA}, "format"="json")', "format is invalid property of KAFKA"),
        (
            f'CREATE ROUTINE LOAD d.j ON t FROM KINESIS({KINESIS}, "columns"="a")',
            "columns is invalid property of KINESIS",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(text: str, words: str) -> None:
    with pytest.raises(SqlError, match=words):
        check(text)
