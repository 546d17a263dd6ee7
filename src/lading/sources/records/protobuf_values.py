"""Records of Protobuf. The message classes are made from the descriptors that the registry hands out.

A field that may be absent, and is, becomes null; other fields have their default when they were not set.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.serde import SchemaId
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from lading.sources.records.protobuf_types import ProtobufTypes

_NANOS = 9


class ProtobufValues:
    """Reads each record with the schema it was written with."""

    def __init__(self, client: SchemaRegistryClient, url: str) -> None:
        self._types = ProtobufTypes(client, url)

    def fields(self, schema_id: int, value: bytes) -> Mapping[str, Any]:
        frame = SchemaId("PROTOBUF")
        payload = frame.from_bytes(io.BytesIO(value))
        message = self._types.message_class(schema_id, tuple(frame.message_indexes or (0,)))()
        message.ParseFromString(payload.read())
        return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def _field(message: Message, field: FieldDescriptor) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated:
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            kind = entry.fields_by_name["value"]
            return {_word(key): _single(kind, item) for key, item in sorted(value.items())}
        return [_single(field, item) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _single(field, value)


def _word(key: Any) -> Any:
    return str(key).lower() if isinstance(key, bool) else key


def _single(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return _message(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else value
    return _shortest(value) if field.type == FieldDescriptor.TYPE_FLOAT else value


def _message(message: Message) -> Any:
    name = message.DESCRIPTOR.full_name
    if name in _READERS:
        return _READERS[name](message)
    if name.startswith("google.protobuf."):
        if name.endswith("Value") and "value" in message.DESCRIPTOR.fields_by_name:
            return _field(message, message.DESCRIPTOR.fields_by_name["value"])
        return json_format.MessageToDict(
            message, preserving_proto_field_name=True, descriptor_pool=message.DESCRIPTOR.file.pool
        )
    found = {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}
    return {field: value for field, value in found.items() if value is not None}


def _shortest(value: float) -> float:
    """The double that is written in the shortest way among those that a single stands for."""
    for digits in range(6, 9):
        written = float(f"{value:.{digits}g}")
        try:
            if struct.pack("f", written) == struct.pack("f", value):
                return written
        except OverflowError:
            continue
    return value


def _decimal(message: Any) -> Decimal:
    return (
        Decimal((0, (0,), 0))
        if not message.value
        else _scaled(int.from_bytes(message.value, signed=True), message.scale)
    )


def _scaled(unscaled: int, scale: int) -> Decimal:
    sign, digits, _ = Decimal(unscaled).as_tuple()
    return Decimal((sign, digits, -scale))


def _duration(message: Any) -> Decimal:
    whole = _scaled(message.seconds * 10**_NANOS + message.nanos, _NANOS)
    return whole.normalize() if message.nanos else Decimal(message.seconds)


def _date(message: Any) -> Any:
    """A date without its year or day is none that a cast would take."""
    if message.year and message.month and message.day:
        return date(message.year, message.month, message.day)
    return {"year": message.year, "month": message.month, "day": message.day}


def _time(message: Any) -> str:
    written = time(message.hours, message.minutes, message.seconds).isoformat()
    return f"{written}.{message.nanos:09d}" if message.nanos else written


_READERS: dict[str, Callable[[Any], Any]] = {
    "confluent.type.Decimal": _decimal,
    "google.protobuf.Duration": _duration,
    "google.type.Date": _date,
    "google.type.TimeOfDay": _time,
}
