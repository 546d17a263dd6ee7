"""Casts: many values at once where they are written in the usual way, the others one by one as Spark reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lading.pipeline.vector import cast_reference
from lading.pipeline.vector.arrays import (
    Bools,
    Scaled,
    UnsureError,
    arrow_type,
    conditions,
    content,
    dtype,
    literal,
    made,
    merged,
    raw,
    truths,
    valid_of,
)
from lading.pipeline.vector.decimals import arrow_of, cast_decimal, decimals_of, scaled_of
from lading.sql.expressions.vector_nodes import VectorType

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_USUAL = {
    "tinyint": "^-?[0-9]{1,2}$",
    "smallint": "^-?[0-9]{1,4}$",
    "int": "^-?[0-9]{1,9}$",
    "bigint": "^-?[0-9]{1,18}$",
    "double": "^[+-]?[0-9]{1,30}([.][0-9]{1,30})?([eE][+-]?[0-9]{1,3})?$",
    "decimal": "^-?[0-9]{1,9}([.][0-9]{1,6})?$",
    "date": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "timestamp": "^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?)?$",
}
_USUAL["timestamp_ntz"] = _USUAL["timestamp"]
_MOST_LETTERS = 15
"""A double tells all decimals apart that have so many digits."""
_MOST_MANTISSA, _MOST_DIGITS = 10**15, 38
_DAY_US = 86_400_000_000
_Reader = Callable[[bytes], Any]


def cast_text(array: pa.Array, kind: VectorType) -> Any:
    """TRY_CAST of texts."""
    if array.null_count == len(array):
        return pa.nulls(len(array), arrow_type(kind))
    found = _quick(array, kind)
    if found is not None:
        return found
    usual = pc.match_substring_regex(array, _USUAL[kind.name]) if kind.name in _USUAL else None
    mask = np.zeros(len(array), np.bool_) if usual is None else truths(usual)
    some = _quick(array.filter(conditions(mask)), kind) if mask.any() else None
    if some is None:
        mask = np.zeros(len(array), np.bool_)
    others = _one_by_one(array.filter(conditions(~mask)), kind)
    return others if some is None else merged(mask, arrow_of(some, kind), others)


def _quick(array: pa.Array, kind: VectorType) -> Any:
    """Arrow's own reading, where it takes nothing that Spark does not; None: some texts need a closer look."""
    try:
        if kind.is_decimal:
            return _quick_decimal(array, kind)
        if kind.name in _BITS:
            letters = content(array)
            return None if b"x" in letters or b"X" in letters else array.cast(arrow_type(kind))
        if kind.name == "double":
            return None if content(array).translate(None, b"0123456789.eE+-") else array.cast(pa.float64())
        if kind.name == "date":
            return array.cast(pa.date32())
        if kind.name in ("timestamp", "timestamp_ntz"):
            return array.cast(pa.timestamp("us")).view(arrow_type(kind))
    except pa.ArrowInvalid:
        return None
    return None


def _quick_decimal(array: pa.Array, kind: VectorType) -> Any:
    letters = content(array)
    if letters.translate(None, b"0123456789.-"):
        return None
    longest = pc.max(pc.binary_length(array)).as_py() or 0
    if longest <= _MOST_LETTERS and (found := _by_doubles(array)) is not None:
        return cast_decimal(found, VectorType("decimal", 38, found.scale), kind)
    # With more digits than 38 Arrow begins again from zero, and does not say so.
    return array.cast(arrow_type(kind)) if longest + kind.scale <= _MOST_DIGITS else None


def _by_doubles(array: pa.Array) -> Scaled | None:
    """Short decimals read as doubles, which is five times as fast.

    Two decimals of at most fifteen digits are never the same double. So a whole number over a power of ten that is the
    double which was read is the decimal which was written.
    """
    doubles, valid = array.cast(pa.float64()), valid_of(array)
    values = raw(doubles, np.float64)
    if valid is not None:
        values = np.where(valid, values, 0.0)
    for scale in (0, 2, 4, 6):
        grown = np.rint(values * 10.0**scale)
        if np.abs(grown).max(initial=0) >= _MOST_MANTISSA:
            return None
        if (grown / 10.0**scale == values).all():
            return Scaled(grown.astype(np.int64), valid, scale)
    return None


def _one_by_one(array: pa.Array, kind: VectorType) -> pa.Array:
    """As Spark reads each; the same text is read once."""
    coded = array.dictionary_encode()
    listed = [None if each is None else each.encode() for each in _listed(coded.dictionary)]
    found = _read_all(listed, kind)
    return found.take(coded.indices)


def _listed(array: pa.Array) -> list[str | None]:
    try:
        return array.to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
    except UnicodeDecodeError as error:
        msg = "a text that is not UTF-8"
        raise UnsureError(msg) from error


def _read_all(listed: list[bytes | None], kind: VectorType) -> pa.Array:
    if kind.is_decimal:
        return decimals_of([None if each is None else cast_reference.decimal(each) for each in listed], kind)
    read = [None if each is None else _readers(kind)(each) for each in listed]
    valid = np.fromiter((value is not None for value in read), np.bool_, len(read))
    if kind.name == "boolean":
        return conditions(np.fromiter((bool(value) for value in read), np.bool_, len(read)), valid)
    values = np.fromiter((0 if value is None else value for value in read), dtype(kind), len(read))
    return made(values, valid, arrow_type(kind))


def _readers(kind: VectorType) -> _Reader:
    if kind.name in _BITS:
        return partial(cast_reference.integer, bits=_BITS[kind.name])
    readers: dict[str, _Reader] = {
        "double": cast_reference.double,
        "boolean": cast_reference.boolean,
        "date": cast_reference.date,
        "timestamp": partial(cast_reference.moment, has_zone=True),
        "timestamp_ntz": partial(cast_reference.moment, has_zone=False),
    }
    return readers[kind.name]


def cast_value(value: Any, given: VectorType, kind: VectorType) -> Any:
    """TRY_CAST of anything but texts."""
    if given.is_decimal:
        return cast_decimal(value, given, kind) if kind.is_decimal else _from_decimal(value, given, kind)
    if kind.is_decimal:
        digits = raw(value, dtype(given)).astype(np.int64)
        valid = valid_of(value)
        digits = digits if valid is None else np.where(valid, digits, 0)
        return cast_decimal(Scaled(digits, valid, 0), VectorType("decimal", 20, 0), kind)
    if given.name == "boolean":
        return value.cast(arrow_type(kind))
    if kind.name == "boolean":
        return pc.not_equal(value, literal(0, given))
    if given.name in ("date", "timestamp", "timestamp_ntz"):
        return _cast_time(value, given, kind)
    if kind.name in _BITS:
        return _to_integer(raw(value, dtype(given)), valid_of(value), kind)
    return value.cast(arrow_type(kind), safe=False)


def _to_integer(values: Any, valid: Bools | None, kind: VectorType) -> pa.Array:
    """Cut off behind the point; NULL for what is too large."""
    half = 2 ** (_BITS[kind.name] - 1)
    if values.dtype.kind == "f":
        values = np.trunc(values.astype(np.float64))
        # As a double, the largest bigint is one more than it is: Java takes that, and makes it the largest.
        fits = (values >= -half) & ((values <= half) if half == 2**63 else (values < half))
        both = fits if valid is None else fits & valid
        with np.errstate(invalid="ignore"):
            cut = np.where(both & (values < half), values, 0).astype(dtype(kind))
        return made(np.where(both & (values >= half), dtype(kind)(half - 1), cut), both, arrow_type(kind))
    fits = (values >= -half) & (values <= half - 1)
    both = fits if valid is None else fits & valid
    return made(np.where(both, values, 0).astype(dtype(kind)), both, arrow_type(kind))


def _from_decimal(value: Any, given: VectorType, kind: VectorType) -> pa.Array:
    found = scaled_of(value, given)
    if kind.name in _BITS:
        if found is None:
            whole = value.cast(pa.decimal256(given.precision, given.scale))
            whole = pc.trunc(whole).cast(pa.decimal256(76, 0))
            limit = 2 ** (_BITS[kind.name] - 1)
            is_fit = pc.and_(
                pc.less_equal(whole, pa.scalar(limit - 1, pa.decimal256(76, 0))),
                pc.greater_equal(whole, pa.scalar(-limit, pa.decimal256(76, 0))),
            )
            return pc.if_else(is_fit, whole, pa.scalar(None, whole.type)).cast(arrow_type(kind))
        unit = 10**found.scale
        values = np.where(found.values < 0, -(-found.values // unit), found.values // unit)
        return _to_integer(values, found.valid, kind)
    if found is not None and found.scale <= 22 and np.abs(found.values).max(initial=0) < 2**53:
        doubles = found.values.astype(np.float64) / 10.0**found.scale
    else:
        listed = arrow_of(value, given).to_pylist()
        doubles = np.fromiter((0.0 if each is None else float(each) for each in listed), np.float64, len(listed))
    valid = valid_of(value) if found is None else found.valid
    return made(doubles.astype(dtype(kind)), valid, arrow_type(kind))


def _cast_time(value: pa.Array, given: VectorType, kind: VectorType) -> pa.Array:
    """In UTC, which is the zone of the session."""
    values, valid = raw(value, dtype(given)), valid_of(value)
    if kind.name == "date":
        return made((values // _DAY_US).astype(np.int32), valid, pa.date32())
    if given.name != "date":
        return value.view(arrow_type(kind))
    days = values.astype(np.int64)
    if valid is not None:
        days = np.where(valid, days, 0)
    if np.abs(days).max(initial=0) > 106_000_000:
        msg = "a date that is no timestamp"
        raise UnsureError(msg)
    return made(days * _DAY_US, valid, arrow_type(kind))
