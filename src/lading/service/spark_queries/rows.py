"""Rows of an answer: from Arrow, which the query process sends, to the values that Python and the faces know."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """The rows of a batch. Times with a zone are told in UTC, without it, as every face does. A STRUCT is a dict of its
    fields, in their order."""
    if not batch.num_columns:
        return [()] * batch.num_rows
    return list(zip(*(_values(column) for column in batch.columns), strict=True))


def _values(array: pa.Array) -> list[Any]:
    kind = array.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return [None if value is None else _plain_time(value) for value in array.to_pylist()]
    if pa.types.is_struct(kind):
        return _structs(array)
    if pa.types.is_map(kind):
        return [None if pairs is None else {_key(key): item for key, item in pairs} for pairs in _lists(array)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return list(_lists(array))
    values: list[Any] = array.to_pylist()
    return values


def _structs(array: pa.StructArray) -> list[Any]:
    names = _told_apart([field.name for field in array.type])
    columns = [_values(column) for column in array.flatten()]
    rows = zip(*columns, strict=True) if columns else ((),) * len(array)
    valid = array.is_valid().to_pylist()
    return [dict(zip(names, row, strict=True)) if is_there else None for row, is_there in zip(rows, valid, strict=True)]


def _told_apart(names: Sequence[str]) -> list[str]:
    """`struct(a.id, b.id)` has two fields of one name; they are numbered, as Spark does for pandas."""
    count, taken = Counter(names), set(names)
    told = []
    for name in names:
        if count[name] > 1:
            free = (each for number in itertools.count() if (each := f"{name}_{number}") not in taken)
            taken.add(name := next(free))
        told.append(name)
    return told


def _lists(array: pa.ListArray | pa.LargeListArray | pa.MapArray) -> Iterator[Any]:
    """The values of each list; of a map, its pairs."""
    if pa.types.is_map(array.type):
        values: list[Any] = list(zip(_values(array.keys), _values(array.items), strict=True))
    else:
        values = _values(array.values)
    ends = array.offsets.to_pylist()
    for start, end, is_there in zip(ends[:-1], ends[1:], array.is_valid().to_pylist(), strict=True):
        yield values[start:end] if is_there else None


def _key(value: Any) -> Any:
    """What a dict can have as a key: of a STRUCT, its values."""
    match value:
        case dict():
            return tuple(_key(each) for each in value.values())
        case list():
            return tuple(_key(each) for each in value)
    return value


def _plain_time(value: datetime) -> datetime:
    return value.astimezone(UTC).replace(tzinfo=None)
