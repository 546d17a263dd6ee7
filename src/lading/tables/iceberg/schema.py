"""A table description as an Iceberg schema and partition spec, and whether staged files still fit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import ResolveError, ValidationError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema, promote
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import (
    BucketTransform,
    IdentityTransform,
    TruncateTransform,
    UnknownTransform,
    parse_transform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from lading.errors import ConfigError, SchemaMismatchError
from lading.model.field_ids import FIELD_ID
from lading.model.table import Column, TableSpec
from lading.tables.types import arrow_type

_BY_ARROW: dict[pa.DataType, IcebergType] = {
    pa.bool_(): BooleanType(),
    pa.int8(): IntegerType(),
    pa.int16(): IntegerType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
    pa.date32(): DateType(),
    pa.timestamp("us", tz="UTC"): TimestamptzType(),
    pa.timestamp("us"): TimestampType(),
}


RESERVED = frozenset(
    ("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
)
"""Iceberg's metadata columns. Spark and Trino refuse to read a table that has a column of such a name."""


def check_name(name: str) -> None:
    """Refuse a new column with a name that Iceberg keeps for itself. Raises ConfigError."""
    if name.lower() in RESERVED:
        msg = f"Column {name} cannot be in an Iceberg table: the name is that of one of its metadata columns"
        raise ConfigError(msg, left="Nothing was changed.", todo="Choose another name; Spark could not read the table.")


def iceberg_schema(spec: TableSpec) -> Schema:
    """Columns in order, with field ids from 1."""
    for column in spec.columns:
        check_name(column.name)
    inside = count(len(spec.columns) + 1)
    fields = [
        NestedField(
            field_id=number, name=column.name, field_type=iceberg_type(column, inside), required=not column.nullable
        )
        for number, column in enumerate(spec.columns, start=1)
    ]
    try:
        return Schema(*fields)
    except ValueError as error:
        msg = f"The columns do not make an Iceberg schema: {error}"
        raise ConfigError(msg, left="Nothing was made.", todo="Give every column its own name.") from error


def iceberg_type(column: Column, numbers: Iterator[int] | None = None) -> IcebergType:
    """The type of one column. `numbers` are given to what is inside of it; a new column gets others from the table."""
    return _iceberg(arrow_type(column), numbers or count(1))


def _iceberg(arrow: pa.DataType, numbers: Iterator[int]) -> IcebergType:
    if pa.types.is_decimal(arrow):
        return DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_struct(arrow):
        named = [(next(numbers), field) for field in arrow]
        return StructType(*(NestedField(n, field.name, _iceberg(field.type, numbers), False) for n, field in named))
    if pa.types.is_map(arrow):
        key, value = next(numbers), next(numbers)
        return MapType(key, _iceberg(arrow.key_type, numbers), value, _iceberg(arrow.item_type, numbers), False)
    if pa.types.is_list(arrow):
        return ListType(next(numbers), _iceberg(arrow.value_type, numbers), False)
    return _BY_ARROW[arrow]


def iceberg_partition_spec(spec: TableSpec, schema: Schema) -> PartitionSpec:
    """Partition fields in order, named as Spark names them: `city`, `at_day`, `id_bucket`, `name_trunc`."""
    fields: list[PartitionField] = []
    taken = set(schema.column_names)
    for number, wanted in enumerate(spec.partition_by):
        source = _source(schema, wanted.column)
        transform = _transform(wanted.transform, source)
        name = _partition_name(wanted.column, transform, taken)
        taken.add(name)
        fields.append(
            PartitionField(
                source_id=source.field_id, field_id=PARTITION_FIELD_ID_START + number, transform=transform, name=name
            )
        )
    return PartitionSpec(*fields)


def _source(schema: Schema, column: str) -> NestedField:
    try:
        return schema.find_field(column)
    except ValueError as error:
        msg = f"The table is partitioned by {column}, which is not one of its columns"
        raise ConfigError(
            msg, left="Nothing was made.", todo=f"Columns are: {', '.join(schema.column_names)}."
        ) from error


def _transform(text: str, source: NestedField) -> Any:
    try:
        transform = parse_transform(text.lower().replace(" ", ""))
    except (ValueError, ValidationError):
        transform = UnknownTransform(transform=text)
    if isinstance(transform, UnknownTransform) or not transform.can_transform(source.field_type):
        msg = f"Column {source.name} ({source.field_type}) cannot be partitioned by {text}"
        raise ConfigError(
            msg, left="Nothing was made.", todo="Known are: identity, year, month, day, hour, bucket[N], truncate[W]."
        )
    return transform


def _partition_name(column: str, transform: Any, taken: set[str]) -> str:
    match transform:
        case IdentityTransform():
            return column
        case BucketTransform():
            name = f"{column}_bucket"
        case TruncateTransform():
            name = f"{column}_trunc"
        case _:
            name = f"{column}_{transform}"
    while name in taken:
        name = f"{name}_p"
    return name


def plain_arrow_schema(schema: Schema) -> pa.Schema:
    """The columns with the Arrow types the rest of Lading uses: `string`, not `large_string`, and no field ids."""
    wide = schema_to_pyarrow(schema, include_field_ids=False)
    return pa.schema([pa.field(field.name, _plain(field.type), nullable=field.nullable) for field in wide])


def numbered_arrow_schema(schema: Schema) -> pa.Schema:
    """The same with the numbers by which files know the columns."""
    plain = plain_arrow_schema(schema)
    numbers = {field.name: str(field.field_id).encode() for field in schema.fields}
    return pa.schema([field.with_metadata({FIELD_ID: numbers[field.name]}) for field in plain])


def has_reused_names(metadata: TableMetadata) -> bool:
    """Whether a column has the name that another one had before."""
    numbers = {field.name: field.field_id for field in metadata.schema().fields}
    older = (field for schema in metadata.schemas for field in schema.fields)
    return any(numbers.get(field.name, field.field_id) != field.field_id for field in older)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type), nullable=field.nullable) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), kind.item_field.with_type(_plain(kind.item_type)).remove_metadata())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _plain(kind.value_type), nullable=kind.value_field.nullable))
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)


def check_fits(file_schema: Schema, current: Schema, *, where: str) -> None:
    """Refuse files whose columns the current schema of the table cannot read as they were written.

    A column that was added since and may be null is fine, and so is a widened type: Iceberg reads by field id. A
    column that is gone is not: its rows would be dropped without a word. Nor is one with another name: jobs fill
    columns by their names, and another column may have that name now.
    """
    theirs = {field.field_id: field for field in file_schema.fields}
    ours = {field.field_id: field for field in current.fields}
    for field_id, field in theirs.items():
        if field_id not in ours:
            raise _misfit(where, f"column {field.name} (field {field_id}) is no longer part of the table")
    for field_id, field in ours.items():
        old = theirs.get(field_id)
        if old is None and field.required:
            raise _misfit(where, f"column {field.name} is required and the files do not have it")
        if old is not None and old.name != field.name:
            raise _misfit(where, f"column {old.name} is called {field.name} now")
        if old is not None and field.required and not old.required:
            raise _misfit(where, f"column {field.name} must not be null any more")
        if old is not None and not _reads(old.field_type, field.field_type):
            raise _misfit(where, f"column {field.name} was {old.field_type} and is {field.field_type}")


def _reads(written: IcebergType, now: IcebergType) -> bool:
    if written == now:
        return True
    try:
        return bool(promote(written, now) == now)
    except ResolveError:
        return False


def _misfit(where: str, why: str) -> SchemaMismatchError:
    msg = f"Staged files do not fit the Iceberg table {where}: {why}"
    return SchemaMismatchError(
        msg, left="Nothing was written to the table.", todo="The batch must be staged again for the new schema."
    )
