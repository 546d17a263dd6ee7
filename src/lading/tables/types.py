"""Spark SQL type names to Arrow types."""

from __future__ import annotations

import re
from collections.abc import Collection

import pyarrow as pa

from lading.errors import ConfigError
from lading.model.nested_types import NestedType, nested_type, quoted_field
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
    try:
        return _arrow(nested_type(column.type))
    except ValueError as error:
        msg = f"Column {column.name} has a type that is not known: {column.type}"
        todo = f"Known are: {', '.join(sorted(_PLAIN))}, decimal(p,s), array<…>, map<…,…>, struct<…>."
        raise ConfigError(msg, left="Nothing was changed.", todo=todo) from error


def _arrow(kind: NestedType) -> pa.DataType:
    if not kind.is_nested:
        return _plain_arrow(kind.kind)
    parts = [(name, _arrow(part)) for name, part in kind.parts]
    if kind.kind == "struct":
        return pa.struct([pa.field(name, part) for name, part in parts])
    if kind.kind == "array":
        return pa.list_(pa.field("element", parts[0][1]))
    return pa.map_(parts[0][1], parts[1][1])


def _plain_arrow(name: str) -> pa.DataType:
    if plain := _PLAIN.get(name):
        return plain
    if match := _DECIMAL.fullmatch(name):
        return pa.decimal128(int(match[1]), int(match[2]))
    raise ValueError(name)


def fillable(schema: pa.Schema, wanted: Collection[str]) -> pa.Schema:
    """The columns that a job fills; none are `wanted`: all that there are. Nested ones that nobody wants stay NULL, and
    those that Lading cannot make, unless the job wants to fill one or they must not be."""
    asked = {name.lower() for name in wanted}
    return pa.schema([field for field in schema if _is_fillable(field, asked)])


def _is_fillable(field: pa.Field, asked: Collection[str]) -> bool:
    if not is_nested(field.type):
        return True
    is_wanted = field.name.lower() in asked
    if (why_not := unmade(field.type)) is None:
        return is_wanted or not asked or not field.nullable
    if field.nullable and not is_wanted:
        return False
    why = "is to be filled by the job" if is_wanted else "must not be NULL"
    msg = f"Column {field.name} {why}, and Lading cannot load into its type {spark_type(field.type)}: {why_not}"
    todo = "Leave it out: INSERT INTO t (the other columns); it stays NULL then. A string can hold it as JSON."
    raise ConfigError(msg, left="Nothing was changed.", todo=todo)


def unmade(kind: pa.DataType) -> str | None:
    """Why Lading cannot make values of a nested type; None: it can."""
    if pa.types.is_map(kind):
        return unmade(kind.key_type) or _unmade_part("value", kind.item_field)
    if pa.types.is_struct(kind):
        found = [_unmade_part(f"field {field.name}", field) for field in kind]
        return next((why for why in found if why is not None), None)
    if pa.types.is_list(kind):
        return _unmade_part("element", kind.value_field)
    is_known = pa.types.is_decimal128(kind) or (kind in _PLAIN.values() and not pa.types.is_binary(kind))
    return None if is_known else f"{kind} cannot be inside of others"


def _unmade_part(what: str, field: pa.Field) -> str | None:
    return unmade(field.type) if field.nullable else f"its {what} must not be NULL"


def is_nested(kind: pa.DataType) -> bool:
    """Whether a type is made of others."""
    return bool(pa.types.is_nested(kind))


def _nested_type(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{quoted_field(field.name)}:{spark_type(field.type)}' for field in kind)}>"
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
