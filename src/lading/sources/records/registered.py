"""The columns of a stream by the schema that a registry keeps for it, not by what its records happen to hold.

The schema is the newest of the subject `<topic>-value`, as Confluent's clients name it unless they are told otherwise.
Types are those that the texts of `value_text` can be cast to without a loss; what is nested stays JSON in a string.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from lading.errors import SourceError
from lading.sources.records.errors import asking, registry_refused
from lading.sources.records.registry import open_client
from lading.sources.records.spec import RecordKind, RegistryAccess

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor

_SCHEMA_KINDS = {RecordKind.AVRO: "AVRO", RecordKind.PROTOBUF: "PROTOBUF", RecordKind.JSON: "JSON"}
_STRING = "string"
_AVRO = {"boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double"}
_AVRO_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
    "time-millis": _STRING,
    "time-micros": _STRING,
    "uuid": _STRING,
    "duration": _STRING,
}
_JSON = {"boolean": "boolean", "integer": "bigint", "number": "double"}
_JSON_FORMATS = {"date": "date", "date-time": "timestamp"}
_MESSAGES = {
    "google.protobuf.Timestamp": "timestamp",
    "google.type.Date": "date",
    "google.protobuf.BoolValue": "boolean",
    "google.protobuf.Int32Value": "int",
    "google.protobuf.Int64Value": "bigint",
    "google.protobuf.UInt32Value": "bigint",
    "google.protobuf.UInt64Value": "decimal(20,0)",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.DoubleValue": "double",
}
_MOST_DIGITS = 38


def registered_columns(kind: RecordKind, access: RegistryAccess, topic: str) -> dict[str, str] | None:
    """Names and Spark's types; None when the registry has no schema for the values of the topic.

    Raises SourceError or StageError when the registry does not answer, or has a schema of another kind.
    """
    wanted = _SCHEMA_KINDS.get(kind)
    if wanted is None:
        return None
    with closing(open_client(access)) as client:
        try:
            with asking(access.url):
                found = client.get_latest_version(f"{topic}-value")
        except SourceError as error:
            if error.code != "NoSuchSchema":
                raise
            return None
        if found.schema.schema_type != wanted:
            why = f"its schema of {topic}-value is one of {found.schema.schema_type}, not of {wanted}"
            raise registry_refused(access.url, why, f'Say another "format", not {kind.value}.')
        if kind is RecordKind.PROTOBUF:
            from lading.sources.records.protobuf_types import ProtobufTypes

            made = ProtobufTypes(client, access.url).message_class(int(found.schema_id or 0), (0,))
            return {field.name: _protobuf_type(field) for field in made.DESCRIPTOR.fields}
        try:
            tree = json.loads(found.schema.schema_str or "")
            return _avro_columns(tree) if kind is RecordKind.AVRO else _json_columns(tree)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            why = f"its schema of {topic}-value cannot be read ({error})"
            raise registry_refused(access.url, why, "Name the columns of the table yourself.") from error


# Avro.


def _avro_columns(tree: Any) -> dict[str, str]:
    if not isinstance(tree, dict) or tree.get("type") != "record":
        msg = "it is no record with fields"
        raise ValueError(msg)
    named: dict[str, Any] = {}
    return {str(field["name"]): _avro_type(field["type"], named) for field in tree["fields"]}


def _avro_type(kind: Any, named: dict[str, Any]) -> str:
    if isinstance(kind, list):
        others = [each for each in kind if each != "null"]
        return _avro_type(others[0], named) if len(others) == 1 else _STRING
    if isinstance(kind, str):
        return _avro_type(named[kind], named) if kind in named else _AVRO.get(kind, _STRING)
    if "name" in kind:
        named[str(kind["name"])] = kind
    logical = kind.get("logicalType")
    if logical == "decimal":
        return _decimal(kind)
    if logical in _AVRO_LOGICAL:
        return _AVRO_LOGICAL[logical]
    inner = kind["type"]
    return _AVRO.get(inner, _STRING) if isinstance(inner, str) else _avro_type(inner, named)


def _decimal(kind: Mapping[str, Any]) -> str:
    digits, scale = int(kind["precision"]), int(kind.get("scale", 0))
    return f"decimal({digits},{scale})" if 0 <= scale <= digits <= _MOST_DIGITS else _STRING


# JSON Schema.


def _json_columns(tree: Any) -> dict[str, str]:
    return {str(name): _json_type(each) for name, each in tree["properties"].items()}


def _json_type(said: Any) -> str:
    """Also the form of clients that write optional fields as `oneOf` with null."""
    kinds = said.get("oneOf") or said.get("anyOf") if isinstance(said, dict) else None
    if kinds is not None:
        others = [each for each in kinds if each.get("type") != "null"]
        return _json_type(others[0]) if len(others) == 1 else _STRING
    if not isinstance(said, dict):
        return _STRING
    kind = said.get("type")
    if isinstance(kind, list):
        others = [each for each in kind if each != "null"]
        kind = others[0] if len(others) == 1 else None
    if kind == "string":
        return _JSON_FORMATS.get(str(said.get("format")), _STRING)
    return _JSON.get(str(kind), _STRING)


# Protobuf.


def _protobuf_type(field: FieldDescriptor) -> str:
    from google.protobuf.descriptor import FieldDescriptor as Kinds

    if field.is_repeated:
        return _STRING
    if field.message_type is not None:
        return _MESSAGES.get(field.message_type.full_name, _STRING)
    return {
        Kinds.TYPE_BOOL: "boolean",
        Kinds.TYPE_INT32: "int",
        Kinds.TYPE_SINT32: "int",
        Kinds.TYPE_SFIXED32: "int",
        Kinds.TYPE_UINT32: "bigint",
        Kinds.TYPE_FIXED32: "bigint",
        Kinds.TYPE_INT64: "bigint",
        Kinds.TYPE_SINT64: "bigint",
        Kinds.TYPE_SFIXED64: "bigint",
        Kinds.TYPE_UINT64: "decimal(20,0)",
        Kinds.TYPE_FIXED64: "decimal(20,0)",
        Kinds.TYPE_FLOAT: "float",
        Kinds.TYPE_DOUBLE: "double",
    }.get(field.type, _STRING)
