"""Defaults of columns (format version 3), as Spark SQL writes them."""

from __future__ import annotations

import json

from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    TimestampType,
    TimestamptzType,
)

_NUMBERS = (DecimalType, DoubleType, FloatType, IntegerType, LongType)
_TIMES: dict[IcebergType, str] = {DateType(): "date", TimestampType(): "timestamp_ntz", TimestamptzType(): "timestamp"}


def default_text(field: NestedField) -> str:
    """What a column that no job fills gets; empty when it has no default."""
    if field.write_default is None:
        return ""
    value = json.loads(field.model_dump_json())["write-default"]
    if isinstance(field.field_type, BooleanType):
        return "true" if value else "false"
    if isinstance(field.field_type, _NUMBERS):
        return str(value)
    return f"{_TIMES.get(field.field_type, '')}'{value}'"
