"""Functions of dates and times, in UTC and in a Gregorian calendar that was always there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lading.pipeline.vector.arrays import UnsureError, arrow_type, both_valid, dtype, full, made, raw, valid_of
from lading.sql.expressions.vector_nodes import Node, VectorType

_PARTS = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
    "dayofyear": pc.day_of_year,
    "weekofyear": pc.iso_week,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
_MOST_DAYS, _MOST_US = 10_000_000, 10_000_000 * 86_400_000_000
"""Beyond these, more than twenty thousand years from now, Arrow's calendar may end."""


def _bounded(value: pa.Array, kind: VectorType) -> None:
    most = _MOST_DAYS if kind.name == "date" else _MOST_US
    numbers, valid = raw(value, dtype(kind)), valid_of(value)
    kept = numbers if valid is None else numbers[valid]
    if len(kept) and (kept.min() < -most or kept.max() > most):
        msg = "a date that is too far away"
        raise UnsureError(msg)


def part(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """A field of a date or a time."""
    value, name = args[0], node.value
    _bounded(value, kinds[0])
    if kinds[0].name == "timestamp":
        value = value.view(pa.timestamp("us"))
    if name in ("dayofweek", "weekday"):
        # Spark counts from Sunday, which is 1, or from Monday, which is 0.
        found = pc.day_of_week(value, count_from_zero=name == "weekday", week_start=1 if name == "weekday" else 7)
    else:
        found = _PARTS[name](value)
    return found.cast(pa.int32())


def shifted(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """date_add and date_sub."""
    days, count = _pair(args)
    function = np.add if node.op == "add_days" else np.subtract
    valid = both_valid(valid_of(days), valid_of(count))
    return made(function(raw(days, np.int32), raw(count, np.int32)), valid, pa.date32())


def difference(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """Days from the second to the first."""
    one, other = _pair(args)
    valid = both_valid(valid_of(one), valid_of(other))
    return made(np.subtract(raw(one, np.int32), raw(other, np.int32)), valid, pa.int32())


def _pair(args: list[Any]) -> list[pa.Array]:
    rows = max(len(each) for each in args if isinstance(each, pa.Array))
    return [full(each, rows) if isinstance(each, pa.Scalar) else each for each in args]


def last_day(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """The last day of its month."""
    _bounded(args[0], kinds[0])
    valid = valid_of(args[0])
    days = raw(args[0], np.int32).astype("datetime64[D]")
    if valid is not None:
        days = np.where(valid, days, np.datetime64(0, "D"))
    following = (days.astype("datetime64[M]") + 1).astype("datetime64[D]").astype(np.int64)
    return made((following - 1).astype(np.int32), valid, pa.date32())


def truncated(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """The begin of the year, month, day, … that a time is in."""
    _bounded(args[0], kinds[0])
    floored = pc.floor_temporal(args[0].view(pa.timestamp("us")), unit=node.value)
    return floored.view(arrow_type(node.type))


def units(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """The number that a date or a time is."""
    return args[0].view(arrow_type(node.type))
