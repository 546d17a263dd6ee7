"""Nested values on their way through a mapping: as texts of JSON, whatever they come from and go to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from lading.errors import ConfigError, SqlError
from lading.model.nested_types import NestedType, nested_type
from lading.pipeline.mapping import RowMapping, TargetColumn
from lading.sql.expressions.value_types import Kind, ValueType
from lading.tables.types import is_nested, spark_type

_OPTIONS = (
    "map('timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSSXXX', "
    "'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS', 'ignoreNullFields', 'false')"
)
"""With all that times have, and with the fields that are NULL."""
_NO_KEYS = ("date", "timestamp", "timestamp_ntz", "binary")
"""Keys of maps that Spark writes as numbers, or as nothing that can be read."""
_TIMES = ("timestamp", "timestamp_ntz")


def with_nested(column: TargetColumn, field: pa.Field, kind: ValueType, zone: str | None) -> TargetColumn:
    """A column whose expression has a type, with nested values written as JSON. Raises SqlError."""
    wants, told = is_nested(field.type), kind.nested
    if wants and zone not in (None, "", "UTC") and _has_times(field.type):
        msg = f"Column {field.name} has times inside of {spark_type(field.type)}, and the job has the time zone {zone}"
        raise SqlError(
            msg, todo="Times inside of others are read as UTC: leave the time zone out, or take STRING for them."
        )
    if not wants and not told:
        return column
    if not wants and spark_type(field.type) != "string":
        msg = f"Column {field.name} is {spark_type(field.type)}, and is filled with a {told}"
        raise SqlError(msg, todo="Take a part of it, as in a.b or a[1]; a STRING column takes it whole, as JSON.")
    if kind.kind in (Kind.TEXT, Kind.NULL):
        return column
    if kind.kind not in (Kind.OTHER, Kind.TEXTS):
        msg = f"Column {field.name} is {spark_type(field.type)}, and is filled with a {kind.spark_name}"
        raise SqlError(msg, todo="Fill it with a nested value, or with a text of JSON.")
    if told and (keys := [key for key in _keys(nested_type(told)) if key in _NO_KEYS]):
        msg = f"Column {field.name} is filled with a {told}, and JSON has no keys of type {keys[0]}"
        raise SqlError(msg, todo="Take parts of it, or its map_keys and map_values.")
    return replace(column, expression=f"to_json({column.expression}, {_OPTIONS})", is_text=True)


def check_written(mapping: RowMapping, written: pa.Schema) -> None:
    """Refuse to fill nested columns that the writer of the table leaves out of its files. Raises ConfigError."""
    for column in mapping.columns:
        if column.nested and column.expression is not None and column.name not in written.names:
            what = f"Column {column.name} ({column.nested}) is to be filled"
            msg = f"{what}, and Lading does not write nested columns to a table with column mapping"
            todo = "Leave it out: INSERT INTO t (the other columns); it stays NULL then."
            raise ConfigError(msg, left="Nothing was changed.", todo=todo)


def _keys(kind: NestedType) -> Iterator[str]:
    for name, part in kind.parts:
        if kind.kind == "map" and name == "key":
            yield part.kind
        yield from _keys(part)


def _has_times(kind: pa.DataType) -> bool:
    def walk(found: NestedType) -> bool:
        return found.kind in _TIMES or any(walk(part) for _, part in found.parts)

    return walk(nested_type(spark_type(kind)))
