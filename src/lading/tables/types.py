"""Spark SQL type names to Arrow types."""

from __future__ import annotations

import re

import pyarrow as pa

from lading.errors import ConfigError
from lading.model.table import Column, TableSpec

_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def arrow_schema(spec: TableSpec) -> pa.Schema:
    """The Arrow schema of a table description."""
    return pa.schema([pa.field(column.name, arrow_type(column), nullable=column.nullable) for column in spec.columns])


def arrow_type(column: Column) -> pa.DataType:
    """The Arrow type of one column."""
    name = column.type.lower().replace(" ", "")
    if plain := _PLAIN.get(name):
        return plain
    if match := _DECIMAL.fullmatch(name):
        return pa.decimal128(int(match[1]), int(match[2]))
    msg = f"Column {column.name} has a type that is not known: {column.type}"
    raise ConfigError(msg, left="Nothing was changed.", todo=f"Known are: {', '.join(sorted(_PLAIN))}, decimal(p,s).")


def spark_type(kind: pa.DataType) -> str:
    """The Spark SQL name of an Arrow type, for the columns of tables that Lading did not make."""
    for name, plain in _PLAIN.items():
        if kind.equals(plain):
            return name
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    msg = f"A column of type {kind} cannot be loaded"
    raise ConfigError(msg, left="Nothing was changed.", todo="Leave the column out of the table, or make it a string.")
