"""Types of source columns as coercions see them."""

from __future__ import annotations

import pyarrow as pa

from lading.errors import ConfigError
from lading.sql.expressions.value_types import OTHER, Kind, ValueType, type_of_spark
from lading.tables.types import is_nested, spark_type


def source_type(kind: pa.DataType) -> ValueType:
    """The type of a column of files, or of a table."""
    if pa.types.is_floating(kind):
        return type_of_spark("double")
    if pa.types.is_integer(kind):
        return type_of_spark("bigint")
    try:
        if is_nested(kind):
            return ValueType(Kind.OTHER, nested=spark_type(kind))  # Nothing is converted without being asked.
        return type_of_spark(spark_type(kind))
    except ConfigError:
        return OTHER  # A type of files that no table has.
