"""Statistics of one Parquet file in the form of the Delta log.

A bound may be wider than the truth, never narrower: readers skip files by it. What cannot be said is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lading.tables.parquet import FileNotes

MAX_TEXT = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1)
_LAST_CODE_POINT, _BEFORE_SURROGATES, _AFTER_SURROGATES = 0x10FFFF, 0xD7FF, 0xE000

Bound = Callable[[Any, bool], str | None]
"""From the value in the Parquet footer and whether it is the upper bound to JSON text; None when it cannot be said."""


def render_stats(footer: pq.FileMetaData, schema: pa.Schema, notes: FileNotes, *, columns: Collection[str]) -> str:
    """`numRecords`, `minValues`, `maxValues` and `nullCount` as JSON text."""
    lows: list[str] = []
    highs: list[str] = []
    nulls: list[str] = []
    leaf = 0
    for field in schema:
        if field.name in columns and not pa.types.is_nested(field.type):
            parts = [footer.row_group(group).column(leaf).statistics for group in range(footer.num_row_groups)]
            key = json.dumps(field.name)
            nulls.append(f"{key}:{notes.nulls[field.name]}")
            if field.name not in notes.with_nan:
                lows.extend(f"{key}:{text}" for text in _bound(field.type, parts, upper=False))
                highs.extend(f"{key}:{text}" for text in _bound(field.type, parts, upper=True))
        leaf += _leaves(field.type)
    sections = {"minValues": lows, "maxValues": highs, "nullCount": nulls}
    body = "".join(f',"{name}":{{{",".join(items)}}}' for name, items in sections.items())
    return f'{{"numRecords":{footer.num_rows}{body}}}'


def _leaves(kind: pa.DataType) -> int:
    if not pa.types.is_nested(kind):
        return 1
    return sum(_leaves(kind.field(at).type) for at in range(kind.num_fields))


def _bound(kind: pa.DataType, parts: Iterable[Any], *, upper: bool) -> list[str]:
    render = _renderer(kind)
    if render is None:
        return []
    values = []
    for part in parts:
        if part is None:
            return []
        if part.has_min_max:
            values.append(_value(kind, part, upper=upper))
        elif part.num_values:
            return []
    if not values:
        return []
    text = render(max(values) if upper else min(values), upper)
    return [] if text is None else [text]


def _value(kind: pa.DataType, part: Any, *, upper: bool) -> Any:
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        # As a number: a Python datetime ends with the year 9999.
        return part.max_raw if upper else part.min_raw
    return part.max if upper else part.min


def _renderer(kind: pa.DataType) -> Bound | None:
    tests: list[tuple[Callable[[pa.DataType], bool], Bound]] = [
        (pa.types.is_integer, lambda value, _: str(value)),
        (pa.types.is_floating, lambda value, _: _number(value)),
        (pa.types.is_decimal, lambda value, _: _decimal(value)),
        (pa.types.is_date, lambda value, _: _day(value)),
        (pa.types.is_timestamp, lambda value, upper: _instant(value, upper, zone="Z" if kind.tz else "")),
        (pa.types.is_string, _text),
        (pa.types.is_large_string, _text),
    ]
    return next((render for test, render in tests if test(kind)), None)


def _number(value: float) -> str | None:
    return json.dumps(value) if math.isfinite(value) else None


def _decimal(value: Decimal) -> str:
    return format(value, "f")


def _day(days: int) -> str | None:
    try:
        return json.dumps((_EPOCH_DAY + timedelta(days=days)).isoformat())
    except OverflowError:
        return None


def _instant(microseconds: int, upper: bool, *, zone: str) -> str | None:
    # The log knows milliseconds only: down for the lower bound, up for the upper one.
    milliseconds = -(-microseconds // 1000) if upper else microseconds // 1000
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return json.dumps(moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone)


def _text(value: str, upper: bool) -> str | None:
    if len(value) <= MAX_TEXT:
        return json.dumps(value)
    short = value[:MAX_TEXT]
    return json.dumps(short) if not upper else _next_text(short)


def _next_text(prefix: str) -> str | None:
    """The smallest text of at most this length that is above everything with this prefix."""
    kept = prefix.rstrip(chr(_LAST_CODE_POINT))
    if not kept:
        return None
    last = ord(kept[-1])
    after = _AFTER_SURROGATES if last == _BEFORE_SURROGATES else last + 1
    return json.dumps(kept[:-1] + chr(after))
