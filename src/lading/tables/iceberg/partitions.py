"""Partition values: computed on Arrow columns, written as text, and read back as PyIceberg's Record values.

The text is JSON of the value as Iceberg stores it: days for dates, microseconds for timestamps, a string for
decimals, base64 for binary. It is exact both ways; null has no text.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampType,
    TimestamptzType,
)

from lading.errors import RecordError, TableError
from lading.model.notices import PartitionField as WrittenField
from lading.tables.folders import short_folders
from lading.tables.parquet import PartitionKey

_DAY_US = 86_400_000_000
_HOUR_US = 3_600_000_000

Columns = Callable[[pa.RecordBatch], list[pa.Array]]


def partition_columns(spec: PartitionSpec, schema: Schema, file_schema: pa.Schema) -> Columns:
    """A function that gives, for a batch, one array of texts per partition field."""
    makers = [_maker(field, schema, file_schema) for field in spec.fields]
    return lambda batch: [maker(batch) for maker in makers]


def _maker(field: PartitionField, schema: Schema, file_schema: pa.Schema) -> Callable[[pa.RecordBatch], pa.Array]:
    source = next((column for column in schema.fields if column.field_id == field.source_id), None)
    if source is None or isinstance(field.transform, UnknownTransform):
        msg = f"Partition field {field.name} ({field.transform}) is of a kind that Lading cannot write"
        raise TableError(
            msg, left="Nothing was written.", todo="Partition by top-level columns with the transforms of Iceberg 2."
        )
    kind = file_schema.field(source.name).type
    result_type = field.transform.result_type(source.field_type)

    def texts(batch: pa.RecordBatch) -> pa.Array:
        column = batch.column(source.name).cast(kind)
        coded = pc.dictionary_encode(_stored(column))
        values, scalar = _transformed(field.transform, source.field_type, coded.dictionary)
        names = [None if value is None else render_value(scalar(value), result_type) for value in values.to_pylist()]
        return pc.take(pa.array(names, pa.string()), coded.indices)

    return texts


def _stored(column: pa.Array) -> pa.Array:
    """Dates as days and timestamps as microseconds, as Iceberg stores them."""
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column


def _transformed(transform: Any, source: IcebergType, values: pa.Array) -> tuple[pa.Array, Callable[[Any], Any]]:
    """Apply a transform to distinct values: in Arrow where there may be many of them, else one by one."""
    is_time = isinstance(source, TimestampType | TimestamptzType)
    match transform:
        case VoidTransform():
            return pa.nulls(len(values)), _same
        case IdentityTransform():
            return values, _same
        case HourTransform():
            return _floor_divide(values, _HOUR_US), _same
        case DayTransform():
            return (_floor_divide(values, _DAY_US) if is_time else values), _same
        case YearTransform() | MonthTransform():
            days = _calendar(values, source)
            years = pc.subtract(pc.year(days), 1970)
            if isinstance(transform, YearTransform):
                return years, _same
            return pc.add(pc.multiply(years, 12), pc.subtract(pc.month(days), 1)), _same
    made = transform.transform(source)
    if isinstance(transform, TruncateTransform) and isinstance(source, IntegerType | LongType):
        bits = 32 if isinstance(source, IntegerType) else 64
        return values, lambda value: _wrapped(made(value), bits)
    return values, made


def _wrapped(value: int, bits: int) -> int:
    """The lowest numbers truncate to less than their type holds. They wrap around, as on the JVM."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _same(value: Any) -> Any:
    return value


def _calendar(values: pa.Array, source: IcebergType) -> pa.Array:
    return values.cast(pa.date32()) if isinstance(source, DateType) else values.cast(pa.timestamp("us"))


def _floor_divide(values: pa.Array, by: int) -> pa.Array:
    # Arrow divides towards zero; times before 1970 need the floor.
    rounded = pc.divide(values, by)
    below = pc.less(pc.subtract(values, pc.multiply(rounded, by)), 0)
    return pc.subtract(rounded, below.cast(pa.int64()))


def written_fields(spec: PartitionSpec, schema: Schema) -> tuple[WrittenField, ...]:
    """How the texts of `partition_columns` are to be read, for those who do not know Iceberg."""
    kinds = {column.field_id: column.field_type for column in schema.fields}
    return tuple(
        WrittenField(name=field.name, form=_form(field.transform, kinds.get(field.source_id))) for field in spec.fields
    )


def _form(transform: Any, source: IcebergType | None) -> str:
    match transform:
        case YearTransform():
            return "year"
        case MonthTransform():
            return "month"
        case DayTransform():
            return "day"
        case HourTransform():
            return "hour"
        case IdentityTransform() if isinstance(source, DateType):
            return "days"
        case IdentityTransform() if isinstance(source, TimestampType | TimestamptzType):
            return "micros"
    return "json"


def render_value(value: Any, kind: IcebergType) -> str:
    """A stored partition value as text."""
    if isinstance(kind, DecimalType):
        return json.dumps(str(value))
    if isinstance(kind, BinaryType | FixedType) or isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    return json.dumps(value)


def parse_value(text: str, kind: IcebergType) -> Any:
    """The stored partition value that a text stands for."""
    value = json.loads(text)
    if isinstance(kind, DecimalType):
        return Decimal(value)
    if isinstance(kind, BinaryType | FixedType):
        return base64.b64decode(value)
    return value


def partition_record(spec: PartitionSpec, schema: Schema, texts: Mapping[str, str | None]) -> Record:
    """The Record of one file, from its texts by partition field name."""
    kinds = {field.name: field.field_type for field in spec.partition_type(schema).fields}
    if kinds.keys() != texts.keys():
        msg = f"A staged file has partition values for {sorted(texts)}, and the table is partitioned by {sorted(kinds)}"
        raise RecordError(msg, left="Nothing was written to the table.", todo="Stage the batch again.")
    values = [
        None if (text := texts[field.name]) is None else parse_value(text, kinds[field.name]) for field in spec.fields
    ]
    return Record(*values)


def partition_folder(
    spec: PartitionSpec, schema: Schema, *, base: str = "data", is_spread: bool = False
) -> Callable[[PartitionKey], str]:
    """Where a file of a partition goes: `data/<name>=<value>/…`, for people only; Iceberg reads the values elsewhere.

    Spread over many prefixes, as stores of objects want it: `data/0110/1001/0011/10101010/<name>=<value>/…`. Engines
    make these from the name of the file, of which a part is random; nobody looks for them.
    """
    names = [field.name for field in spec.fields]

    def folder(key: PartitionKey) -> str:
        place = f"{base}/{_entropy()}" if is_spread else base
        if not key:
            return place
        record = partition_record(spec, schema, dict(zip(names, key, strict=True)))
        return f"{place}/{short_folders(spec.partition_to_path(record, schema).split('/'))}"

    return folder


def _entropy() -> str:
    bits = f"{secrets.randbits(20):020b}"
    return "/".join((bits[:4], bits[4:8], bits[8:12], bits[12:]))
