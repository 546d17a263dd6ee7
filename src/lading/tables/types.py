"""Spark SQL type names to Arrow types."""

from __future__ import annotations

import re
from collections.abc import Collection

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


def fillable(schema: pa.Schema, wanted: Collection[str]) -> pa.Schema:
    """The columns that a job can fill. Nested ones stay NULL, unless the job wants to fill one or they must not be."""
    asked = {name.lower() for name in wanted}
    return pa.schema([field for field in schema if _is_fillable(field, is_wanted=field.name.lower() in asked)])


def _is_fillable(field: pa.Field, *, is_wanted: bool) -> bool:
    if not is_nested(field.type):
        return True
    if field.nullable and not is_wanted:
        return False
    why = "is to be filled by the job" if is_wanted else "must not be NULL"
    msg = f"Column {field.name} {why}, and Lading cannot load into its type: {spark_type(field.type)}"
    todo = "Leave it out: INSERT INTO t (the other columns); it stays NULL then. A string can hold it as JSON."
    raise ConfigError(msg, left="Nothing was changed.", todo=todo)


def is_nested(kind: pa.DataType) -> bool:
    """Whether a type is made of others."""
    return bool(pa.types.is_nested(kind))


def _nested_type(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_type(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.item_type)}>"
    return f"array<{spark_type(kind.value_type)}>"


def spark_type(kind: pa.DataType) -> str:
    """The Spark SQL name of an Arrow type, for the columns of tables that Lading did not make."""
    if is_nested(kind):
        return _nested_type(kind)
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
