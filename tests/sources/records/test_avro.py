"""Avro records, written by Confluent's serialiser with a registry over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.errors import ConfigError, SourceError, StageError
from lading.sources.records.parser import RecordParser
from lading.sources.records.spec import RecordFormat, RecordKind, RegistryAccess
from tests.sources.records.support import META, bad, block, good, parse, rows_of
from tests.support.examples import examples
from tests.support.registry import TestRegistry

CONTEXT = SerializationContext("clicks", MessageField.VALUE)
NO_RETRY = {"max.retries": "0"}


def record(*fields: tuple[str, Any], name: str = "Click") -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": n, "type": kind} for n, kind in fields]})


def writer(client: SchemaRegistryClient, schema: str | Schema) -> Callable[[dict[str, Any]], bytes]:
    serializer = AvroSerializer(client, schema, conf={"subject.name.strategy.type": "TOPIC"})

    def write(value: dict[str, Any]) -> bytes:
        written = serializer(value, CONTEXT)
        assert isinstance(written, bytes)
        return written

    return write


def spec(url: str, *columns: str, **settings: str) -> RecordFormat:
    access = RegistryAccess(url=url, settings={**NO_RETRY, **settings})
    return RecordFormat(kind=RecordKind.AVRO, columns=columns, registry=access)


def test_values_of_all_types_become_texts(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    logical = {
        "d": (
            {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 3},
            Decimal("-123456789012345678.500"),
        ),
        "ms": ({"type": "long", "logicalType": "timestamp-millis"}, datetime(2025, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)),
        "us": ({"type": "long", "logicalType": "timestamp-micros"}, datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)),
        "local": ({"type": "long", "logicalType": "local-timestamp-millis"}, datetime(2025, 1, 2, 3, 4, 5)),  # noqa: DTZ001
        "day": ({"type": "int", "logicalType": "date"}, date(2025, 1, 2)),
        "at": ({"type": "long", "logicalType": "time-micros"}, time(3, 4, 5, 6)),
        "id": ({"type": "string", "logicalType": "uuid"}, UUID(int=7)),
    }
    plain = {
        "i": ("int", 5),
        "l": ("long", 2**60),
        "f": ("double", 1.5),
        "o": ("boolean", True),
        "s": ("string", "é"),
        "u": (["null", "string"], None),
        "b": ("bytes", b"text"),
        "x": ("bytes", b"\xff\x00"),
        "e": ({"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]}, "BLUE"),
        "arr": ({"type": "array", "items": ["null", "long"]}, [1, None, 3]),
        "map": ({"type": "map", "values": logical["d"][0]}, {"é": Decimal("1.500")}),
        "sub": (
            json.loads(record(("t", logical["ms"][0]), ("y", "bytes"), name="Sub")),
            {"t": logical["ms"][1], "y": b"\xff"},
        ),
    }
    fields = {**plain, **logical}
    write = writer(client, record(*((name, kind) for name, (kind, _) in fields.items())))
    value = write({name: item for name, (_, item) in fields.items()})
    (row,) = parse(spec(registry.url, *fields, "absent"), [value])
    assert {name: row[name] for name in (*fields, "absent")} == {
        "i": "5",
        "l": str(2**60),
        "f": "1.5",
        "o": "true",
        "s": "é",
        "u": None,
        "b": "text",
        "x": "/wA=",
        "e": "BLUE",
        "arr": "[1,null,3]",
        "map": '{"é":1.500}',
        "sub": '{"t":"2025-01-02T03:04:05.678000Z","y":"/w=="}',
        "d": "-123456789012345678.500",
        "ms": "2025-01-02T03:04:05.678000Z",
        "us": "2025-01-02T03:04:05Z",
        "local": "2025-01-02T03:04:05",
        "day": "2025-01-02",
        "at": "03:04:05.000006",
        "id": str(UUID(int=7)),
        "absent": None,
    }


def test_records_of_old_and_new_schemas_may_follow_each_other(
    registry: TestRegistry, client: SchemaRegistryClient
) -> None:
    old = writer(client, record(("a", "int"), ("gone", "string")))
    new = writer(client, record(("a", "long"), ("b", ["null", "string"])))
    values = [
        old({"a": 1, "gone": "x"}),
        new({"a": 2, "b": "y"}),
        old({"a": 3, "gone": "z"}),
    ]
    assert len({value[:5] for value in values}) == 2
    rows = parse(spec(registry.url, "a", "b", "gone"), values)
    assert good(rows, "a", "b", "gone") == [("1", None, "x"), ("2", "y", None), ("3", None, "z")]
    assert sum(path.startswith("/schemas/ids/") for path in registry.asked) == 2


def test_a_schema_may_refer_to_another(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    registry.add("part", record(("n", "int"), name="Part"))
    whole = Schema(record(("p", "Part")), "AVRO", [SchemaReference("Part", "part", 1)])
    value = writer(client, whole)({"p": {"n": 4}})
    assert good(parse(spec(registry.url, "p"), [value]), "p") == [('{"n":4}',)]


def test_what_does_not_decode_is_a_bad_row(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    value = writer(client, record(("a", "string"), ("d", "double")))({"a": "x", "d": 1.0})
    bare = registry.add("bare", '"string"')
    values = [value, value[:-4], b"\x00\x00\x00\x00\x63ab", b"plain text", b"\x00", b"\x00\xff\xff\xff\xffab", value]
    values += [b"\x00" + bare.to_bytes(4) + b"\x02x"]
    rows = parse(spec(registry.url, "a"), values)
    assert good(rows, "a", "__row") == [("x", 100), ("x", 106)]
    assert [(number, raw) for number, raw, _ in bad(rows)] == [(100 + at, values[at]) for at in (1, 2, 3, 4, 5, 7)]
    reasons = [reason for _, _, reason in bad(rows)]
    assert reasons[0] == "Does not decode with schema 1: cannot read double"
    assert reasons[1] == "The registry has no schema 99: Schema not found"
    assert reasons[2] == reasons[3] == "Not in the wire format of a schema registry"


def test_an_unknown_schema_is_asked_for_once(registry: TestRegistry) -> None:
    rows = parse(spec(registry.url, "a"), [b"\x00\x00\x00\x00\x63ab"] * 50)
    assert len(bad(rows)) == 50
    assert len(registry.asked) == 1


def test_a_registry_that_does_not_answer_is_no_bad_row(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    value = writer(client, record(("a", "int")))({"a": 1})
    registry.failing = (503, {"error_code": 50301, "message": "not now"})
    parser = RecordParser(spec(registry.url, "a"), META)
    with pytest.raises(StageError, match="not now") as caught:
        rows_of(parser, block([value]))
    assert caught.value.retry
    registry.failing = None
    assert good(rows_of(parser, block([value])), "a") == [("1",)]


def test_a_registry_that_is_gone_is_no_bad_row() -> None:
    with TestRegistry() as registry:
        url = registry.url
    with pytest.raises(StageError, match="did not answer"):
        parse(spec(url, "a"), [b"\x00\x00\x00\x00\x01ab"])


@pytest.mark.parametrize(
    "failing", [(404, {"error_code": 404, "message": "HTTP 404 Not Found"}), (403, {"message": "no"})]
)
def test_something_else_than_a_registry_is_no_bad_row(
    registry: TestRegistry, failing: tuple[int, dict[str, Any]]
) -> None:
    registry.failing = failing
    with pytest.raises(SourceError) as caught:
        parse(spec(registry.url, "a"), [b"\x00\x00\x00\x00\x01ab"])
    assert not caught.value.retry


def test_an_answer_that_is_none_is_no_bad_row(registry: TestRegistry) -> None:
    registry.failing = (200, "<html>log in</html>")
    with pytest.raises(StageError, match="no answer of a registry"):
        parse(spec(registry.url, "a"), [b"\x00\x00\x00\x00\x01ab"])


def test_a_schema_of_another_kind_is_a_bad_row(registry: TestRegistry) -> None:
    registry.add("s", "message X {}", "PROTOBUF")
    rows = parse(spec(registry.url, "a"), [b"\x00\x00\x00\x00\x01ab"])
    assert [reason for _, _, reason in bad(rows)] == [
        "Does not decode with schema 1: the schema is one of PROTOBUF, not of AVRO"
    ]


def test_credentials_go_to_the_registry(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    value = writer(client, record(("a", "int")))({"a": 1})
    registry.user_info = "me:secret"
    assert good(parse(spec(registry.url, "a", **{"basic.auth.user.info": "me:secret"}), [value]), "a") == [("1",)]
    with pytest.raises(SourceError, match="Unauthorized") as caught:
        parse(spec(registry.url, "a", **{"basic.auth.user.info": "me:wrong"}), [value])
    assert "wrong" not in str(caught.value)


def test_wrong_settings_are_said_at_once() -> None:
    for access in (None, RegistryAccess(url="http://x", settings={"what": "1"}), RegistryAccess(url="nowhere")):
        with pytest.raises(ConfigError):
            RecordParser(RecordFormat(kind=RecordKind.AVRO, columns=("a",), registry=access), META)


def test_no_bytes_stop_the_load(registry: TestRegistry) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}
    kinds = [("m", {"type": "map", "values": ["null", "string"]}), ("d", decimal)]
    kinds += [
        ("t", {"type": "long", "logicalType": "timestamp-micros"}),
        ("day", {"type": "int", "logicalType": "date"}),
    ]
    kinds += [("e", {"type": "enum", "name": "E", "symbols": ["A"]}), ("f", "double"), ("u", ["null", "float"])]
    head = b"\x00" + registry.add("s", record(*kinds)).to_bytes(4)
    parser = RecordParser(spec(registry.url, *(name for name, _ in kinds)), META)

    @settings(max_examples=examples(200), deadline=None)
    @given(st.binary(max_size=40))
    def check(payload: bytes) -> None:
        assert len(rows_of(parser, block([head + payload]))) == 1

    check()
