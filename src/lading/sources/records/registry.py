"""Records in the wire format of Confluent's schema registry: a byte 0, the number of a schema, the value.

Each record is read with the schema it names, so records of old and new schemas may follow each other: columns go by
name, and a column that a schema lacks is null.
"""

from __future__ import annotations

import re
import struct
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from lading.errors import ConfigError, SourceError
from lading.model.rows import REST
from lading.sources.fields import FieldNotes
from lading.sources.records.columns import text_column
from lading.sources.records.parsed import Flaw, Taken, runs
from lading.sources.records.spec import RecordFormat, RecordKind, RegistryAccess
from lading.sources.records.value_text import Scalar, text_of

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

_RUN_BYTES = 256 * 1024
_MAX_ID = 2**31 - 1
_ADDRESS = re.compile(r"(?: from)? <[^<>]* at 0x[0-9a-f]+>")
_NUMBERS = (
    "timeout",
    "cache.capacity",
    "cache.latest.ttl.sec",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
)
_DEFAULTS = {"timeout": "10", "max.retries": "3", "retries.wait.ms": "500"}
"""The client itself would wait for an answer for ever."""


class Values(Protocol):
    """Takes one record apart.

    Raises SourceError, or one of the many errors that bytes of another kind can lead to.
    """

    def fields(self, schema_id: int, value: bytes) -> Mapping[str, Any]:
        """The values by name."""
        ...


class RegistryRecords:
    """Takes apart runs of records."""

    def __init__(self, format: RecordFormat, notes: FieldNotes | None = None) -> None:
        access = _access(format)
        client = open_client(access)
        # A parser is nowhere closed; its connections are when it is gone.
        weakref.finalize(self, client.close)
        self._names = format.columns
        self._known = frozenset(format.columns) - {REST}
        self._notes = notes
        self._values = _values(format.kind, client, access.url)
        self._unknown: dict[int, str] = {}

    def take(self, values: Sequence[bytes]) -> Iterator[Taken]:
        for run in runs(values, _RUN_BYTES):
            yield self._take(run)

    def _take(self, values: Sequence[bytes]) -> Taken:
        columns: list[list[Scalar]] = [[] for _ in self._names]
        flaws: dict[int, Flaw] = {}
        for place, value in enumerate(values):
            row = self._row(value)
            if isinstance(row, str):
                flaws[place] = Flaw(value, row)
            for number, column in enumerate(columns):
                column.append(None if isinstance(row, str) else row[number])
        texts = [text_column(column) for column in columns]
        return Taken(records=len(values), rows=len(values), columns=texts, flaws=flaws)

    def _row(self, value: bytes) -> list[Scalar] | str:
        """The values of a record, or why there are none."""
        schema_id = _schema_id(value)
        if isinstance(schema_id, str):
            return schema_id
        if schema_id in self._unknown:
            return self._unknown[schema_id]
        try:
            fields = self._values.fields(schema_id, value)
            rest = self._rest(fields) if self._notes is not None else None
            row = [text_of(rest if name == REST else fields.get(name)) for name in self._names]
            # Text of half a character can be in a value, but not in a column.
            "".join(text for text in row if isinstance(text, str)).encode()
        except SourceError as error:
            if error.code != "NoSuchSchema":
                raise
            self._unknown[schema_id] = f"The registry has no schema {schema_id}: {error.what}"
            return self._unknown[schema_id]
        except _undecodable() as error:
            return f"Does not decode with schema {schema_id}: {_reason(error)}"
        return row

    def _rest(self, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The fields that nobody asked for, but for nulls."""
        found = {name: value for name, value in fields.items() if name not in self._known and value is not None}
        return found or None


def open_client(access: RegistryAccess) -> SchemaRegistryClient:
    """A client of the registry. Nothing is asked yet. Raises ConfigError for settings it does not know."""
    from confluent_kafka.schema_registry import SchemaRegistryClient

    try:
        settings: dict[str, Any] = {"url": access.url, **_DEFAULTS, **access.settings}
        for name in _NUMBERS:
            if name in settings:
                settings[name] = float(settings[name])
        return SchemaRegistryClient(settings)
    except (ValueError, TypeError, OSError) as error:
        msg = f"The settings of the schema registry {access.url} are wrong: {error}"
        raise ConfigError(msg, left="Nothing was read.", todo="Correct the properties of the registry.") from error


def _access(format: RecordFormat) -> RegistryAccess:
    if format.registry is None:
        msg = f"Records of the kind {format.kind.value} need a schema registry"
        raise ConfigError(msg, left="Nothing was read.", todo="Say where it is.")
    return format.registry


def _values(kind: RecordKind, client: SchemaRegistryClient, url: str) -> Values:
    if kind is RecordKind.AVRO:
        from lading.sources.records.avro_values import AvroValues

        return AvroValues(client, url)
    from lading.sources.records.protobuf_values import ProtobufValues

    return ProtobufValues(client, url)


def _schema_id(value: bytes) -> int | str:
    """The number of the schema, or why there is none."""
    if len(value) < 6 or value[0] != 0:
        return "Not in the wire format of a schema registry"
    (schema_id,) = struct.unpack_from(">I", value, 1)
    return int(schema_id) if schema_id <= _MAX_ID else f"No registry has a schema {schema_id}"


def _reason(error: Exception) -> str:
    """What an error says, without what differs from run to run."""
    said = _ADDRESS.sub("", " ".join(str(error).split()))
    return said or type(error).__name__


def _undecodable() -> tuple[type[Exception], ...]:
    from confluent_kafka.schema_registry.error import SchemaParseException, UnknownType
    from confluent_kafka.serialization import SerializationError
    from google.protobuf.message import DecodeError

    broken = (EOFError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)
    return (*broken, struct.error, SerializationError, SchemaParseException, UnknownType, DecodeError)
