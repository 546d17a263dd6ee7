"""What a staged file tells the driver in `StagedFile.stats`: its columns, their nulls and their bounds.

A bound may be wider than the truth, never narrower: readers skip files by it. What cannot be said is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lading.errors import SchemaMismatchError
from lading.model.batch import StagedFile
from lading.tables.parquet import FileNotes

VERSION = 1
MAX_TEXT = 32
_PER_SECOND = {"s": 1_000, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Parquet has no seconds: those are written as milliseconds."""
_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a number of microseconds is added; the zone is put on afterwards
_LAST_CODE_POINT, _BEFORE_SURROGATES, _AFTER_SURROGATES = 0x10FFFF, 0xD7FF, 0xE000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """The parsed text."""

    schema_id: int
    columns: Mapping[str, tuple[int, str]]
    """Name → number and type, as the table had them when the file was written."""
    nulls: Mapping[str, int]
    lows: Mapping[str, Any]
    highs: Mapping[str, Any]


def render_stats(
    footer: pq.FileMetaData, schema: pa.Schema, notes: FileNotes, *, schema_id: int, columns: Mapping[str, Any]
) -> str:
    """The text, from a Parquet footer and what was counted while the file was written."""
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    leaves = {footer.schema.column(at).path: at for at in range(footer.num_columns)}
    for field in schema:
        at = leaves.get(field.name)
        if at is None or field.name in notes.with_nan:
            continue
        parts = [footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups)]
        bounds = _bounds(field.type, parts)
        if bounds is not None:
            lows[field.name], highs[field.name] = bounds
    body = {
        "v": VERSION,
        "schema": schema_id,
        "columns": dict(columns),
        "rows": footer.num_rows,
        "nulls": dict(notes.nulls),
        "lows": lows,
        "highs": highs,
    }
    return json.dumps(body, separators=(",", ":"))


def parse_stats(file: StagedFile, schema: pa.Schema) -> FileFacts:
    """Read the text. Bounds of columns that the table no longer has are passed over."""
    try:
        body = json.loads(file.stats)
        if body["v"] != VERSION or body["rows"] != file.rows:
            raise ValueError(body["v"])
        known = {field.name: field.type for field in schema}
        lows, highs = _values(body["lows"], known, is_upper=False), _values(body["highs"], known, is_upper=True)
        both = lows.keys() & highs.keys()
        return FileFacts(
            schema_id=int(body["schema"]),
            columns={name: (int(number), str(kind)) for name, (number, kind) in body["columns"].items()},
            nulls={name: int(count) for name, count in body["nulls"].items()},
            lows={name: lows[name] for name in both},
            highs={name: highs[name] for name in both},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"The staged file {file.path} was not written for a Paimon table"
        raise SchemaMismatchError(
            msg, left="Nothing was committed.", todo="Stage the batch with the writer of this table."
        ) from error


def _bounds(kind: pa.DataType, parts: Iterable[Any]) -> tuple[Any, Any] | None:
    """The lowest and the highest value, as JSON can have them."""
    lows, highs = [], []
    for part in parts:
        if part is None or (not part.has_min_max and part.num_values):
            return None
        if part.has_min_max:
            raw = pa.types.is_temporal(kind)
            lows.append(part.min_raw if raw else part.min)
            highs.append(part.max_raw if raw else part.max)
    if not lows:
        return None
    low, high = min(lows), max(highs)
    if pa.types.is_string(kind):
        upper = high if len(high) <= MAX_TEXT else _above(high[:MAX_TEXT])
        return None if upper is None else (low[:MAX_TEXT], upper)
    if pa.types.is_floating(kind):
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None
    if pa.types.is_decimal(kind):
        return str(low), str(high)
    return (int(low), int(high)) if pa.types.is_integer(kind) or pa.types.is_temporal(kind) else None


def _above(prefix: str) -> str | None:
    """A text of at most this length that is above everything with this prefix."""
    kept = prefix.rstrip(chr(_LAST_CODE_POINT))
    if not kept:
        return None
    last = ord(kept[-1])
    return kept[:-1] + chr(_AFTER_SURROGATES if last == _BEFORE_SURROGATES else last + 1)


def _values(bounds: Mapping[str, Any], known: Mapping[str, pa.DataType], *, is_upper: bool) -> dict[str, Any]:
    values = {}
    for name, bound in bounds.items():
        # Moments after the year 9999 have no value in Python: a file claims no bounds for such a column.
        with suppress(OverflowError):
            if name in known:
                values[name] = _value(bound, known[name], is_upper=is_upper)
    return values


def _value(bound: Any, kind: pa.DataType, *, is_upper: bool) -> Any:
    """A bound as pypaimon wants it."""
    if pa.types.is_decimal(kind):
        return Decimal(bound)
    if pa.types.is_date32(kind):
        return _EPOCH_DAY + timedelta(days=bound)
    if pa.types.is_timestamp(kind):
        whole, rest = divmod(bound * 1_000_000, _PER_SECOND[kind.unit])
        moment = _EPOCH + timedelta(microseconds=whole + (1 if rest and is_upper else 0))
        return moment.replace(tzinfo=UTC) if kind.tz else moment
    return bound
