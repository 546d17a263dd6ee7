"""The columns that a registry's schema promises: types that every value of them can be cast to."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from google.protobuf import timestamp_pb2

from lading.errors import SourceError, StageError
from lading.sources.records.registered import registered_columns
from lading.sources.records.spec import RecordFormat, RecordKind, RegistryAccess
from tests.sources.records.support import good, parse
from tests.sources.records.test_avro import record, writer
from tests.sources.records.test_protobuf import FIELD, field, file_of, message
from tests.support.registry import TestRegistry

AVRO: dict[str, tuple[Any, str, Any]] = {
    "b": ("boolean", "boolean", True),
    "i": ("int", "int", 7),
    "l": (["null", "long"], "bigint", 2**60),
    "f": ("float", "float", 1.5),
    "d": ("double", "double", 1.5),
    "s": ("string", "string", "x"),
    "y": ("bytes", "string", b"x"),
    "day": ({"type": "int", "logicalType": "date"}, "date", date(2025, 1, 2)),
    "ms": ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp", datetime(2025, 1, 2, tzinfo=UTC)),
    "local": ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp_ntz", datetime(2025, 1, 2)),  # noqa: DTZ001
    "dec": (
        {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
        "decimal(12,3)",
        Decimal("1.250"),
    ),
    "wide": ({"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 3}, "string", Decimal("1.250")),
    "own": ({"type": "long", "logicalType": "of-somebody"}, "bigint", 5),
    "kind": ({"type": "enum", "name": "Kind", "symbols": ["A", "B"]}, "string", "A"),
    "again": ("Kind", "string", "B"),
    "deep": ({"type": "record", "name": "In", "fields": [{"name": "a", "type": "int"}]}, "string", {"a": 1}),
    "many": ({"type": "array", "items": "int"}, "string", [1, 2]),
    "either": (["null", "int", "string"], "string", 3),
}


def access(registry: TestRegistry) -> RegistryAccess:
    return RegistryAccess(url=registry.url, settings={"max.retries": "0"})


def test_avro(registry: TestRegistry, client: SchemaRegistryClient) -> None:
    schema = record(*((name, kind) for name, (kind, _, _) in AVRO.items()))
    value = writer(client, schema)({name: each for name, (_, _, each) in AVRO.items()})
    found = registered_columns(RecordKind.AVRO, access(registry), "clicks")
    assert found == {name: told for name, (_, told, _) in AVRO.items()}
    # Every value is there under its name, as a text.
    format = RecordFormat(kind=RecordKind.AVRO, columns=tuple(found), registry=access(registry))
    ((*texts,),) = good(parse(format, [value]), *found)
    assert all(text is not None for text in texts)


def test_the_newest_version_counts(registry: TestRegistry) -> None:
    registry.add("clicks-value", record(("old", "int")))
    registry.add("clicks-value", record(("new", "long")))
    assert registered_columns(RecordKind.AVRO, access(registry), "clicks") == {"new": "bigint"}
    assert registered_columns(RecordKind.AVRO, access(registry), "others") is None
    assert registered_columns(RecordKind.CSV, access(registry), "clicks") is None


def test_protobuf(registry: TestRegistry) -> None:
    types = {
        "a": (FIELD.TYPE_INT32, "int"),
        "b": (FIELD.TYPE_UINT32, "bigint"),
        "c": (FIELD.TYPE_SINT64, "bigint"),
        "d": (FIELD.TYPE_FIXED64, "decimal(20,0)"),
        "e": (FIELD.TYPE_BOOL, "boolean"),
        "f": (FIELD.TYPE_DOUBLE, "double"),
        "g": (FIELD.TYPE_BYTES, "string"),
    }
    fields = [field(number, name, kind) for number, (name, (kind, _)) in enumerate(types.items(), 1)]
    many = field(8, "many", FIELD.TYPE_INT32, label=FIELD.LABEL_REPEATED)
    at = field(9, "at", FIELD.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp")
    file = file_of("clicks.proto", message("Click", *fields, many, at), imports=(timestamp_pb2.DESCRIPTOR,))
    registry.add("clicks-value", b64encode(file.serialized_pb).decode(), "PROTOBUF")
    found = registered_columns(RecordKind.PROTOBUF, access(registry), "clicks")
    assert found == {**{name: told for name, (_, told) in types.items()}, "many": "string", "at": "timestamp"}


def test_json_schema(registry: TestRegistry) -> None:
    properties = {
        "id": ({"type": "integer"}, "bigint"),
        "price": ({"type": ["null", "number"]}, "double"),
        "ok": ({"oneOf": [{"type": "null"}, {"type": "boolean"}]}, "boolean"),
        "name": ({"type": "string"}, "string"),
        "day": ({"type": "string", "format": "date"}, "date"),
        "at": ({"type": "string", "format": "date-time"}, "timestamp"),
        "deep": ({"type": "object", "properties": {}}, "string"),
        "any": (True, "string"),
    }
    schema = {"type": "object", "properties": {name: said for name, (said, _) in properties.items()}}
    registry.add("clicks-value", json.dumps(schema), "JSON")
    found = registered_columns(RecordKind.JSON, access(registry), "clicks")
    assert found == {name: told for name, (_, told) in properties.items()}


def test_what_cannot_be_used_is_told(registry: TestRegistry) -> None:
    registry.add("clicks-value", record(("id", "int")))
    with pytest.raises(SourceError, match="is one of AVRO, not of PROTOBUF"):
        registered_columns(RecordKind.PROTOBUF, access(registry), "clicks")
    for text in ('"int"', '{"type": "record"}', "not json"):
        registry.add("odd-value", text)
        with pytest.raises(SourceError, match="cannot be read"):
            registered_columns(RecordKind.AVRO, access(registry), "odd")
    registry.failing = (503, {"error_code": 503, "message": "away"})
    with pytest.raises(StageError, match="did not answer"):
        registered_columns(RecordKind.AVRO, access(registry), "clicks")
