"""Rows of an answer: from Arrow, which the query process sends, to the values that Python and the faces know."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]
_Change = Callable[[Any], Any]


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """The rows of a batch. Times with a zone are told in UTC, without it, as every face does."""
    if not batch.num_columns:
        return [()] * batch.num_rows
    columns = []
    for column in batch.columns:
        values = column.to_pylist()
        change = _change(column.type)
        columns.append(values if change is None else [None if value is None else change(value) for value in values])
    return list(zip(*columns, strict=True))


def _change(kind: pa.DataType) -> _Change | None:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _plain_time
    if pa.types.is_map(kind):
        return _map(_change(kind.key_type), _change(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _change(kind.value_type)
        return None if inner is None else lambda values: [_changed(inner, value) for value in values]
    if pa.types.is_struct(kind):
        fields = [(field.name, _change(field.type)) for field in kind]
        # In the order of its fields, as Spark's own rows are.
        return lambda value: tuple(_changed(change, value[name]) for name, change in fields)
    return None


def _map(key: _Change | None, item: _Change | None) -> _Change:
    return lambda pairs: {_changed(key, name): _changed(item, value) for name, value in pairs}


def _changed(change: _Change | None, value: Any) -> Any:
    return value if change is None or value is None else change(value)


def _plain_time(value: datetime) -> datetime:
    return value.astimezone(UTC).replace(tzinfo=None)
