"""Texts that a table cannot tell from NULL once they are partition values."""

from __future__ import annotations

from dataclasses import replace

from lading.pipeline.mapping import RowMapping, TargetColumn
from lading.tables.base import WriterSpec
from lading.tables.registry import kind_of


def with_partition_nulls(mapping: RowMapping, target: WriterSpec) -> RowMapping:
    """The mapping with an empty text as NULL where the table will have NULL.

    In some formats an empty partition value means null, for every type. Said here, a row with an empty text for a
    column that is NOT NULL is a bad row with a reason; said by the writer, it would refuse the batch again and again.
    """
    if not kind_of(target.format).empty_partition_is_null:
        return mapping
    names = {column for column, _ in target.partition_by}
    return replace(mapping, columns=tuple(_column(column, names) for column in mapping.columns))


def _column(column: TargetColumn, partitioned: set[str]) -> TargetColumn:
    if column.name not in partitioned or column.type != "string" or column.expression is None:
        return column
    return replace(column, expression=f"nullif(cast(({column.expression}) AS string), '')")
