"""Decimals: exact, rounded half up, NULL where the digits of their type do not suffice."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lading.pipeline.vector.arrays import (
    Scaled,
    UnsureError,
    arrow_type,
    bitmap,
    both_valid,
    raw,
    spread,
    truths,
    valid_of,
)
from lading.sql.expressions.vector_nodes import VectorType

_MOST = 2**63 - 1
_LEAST = -(2**63)
"""It has no opposite in 64 bits: `-` gives it back."""
_EXACT = Context(prec=200, rounding=ROUND_HALF_UP)


def scaled_of(value: Any, kind: VectorType) -> Scaled | None:
    """Decimals in 64 bits that have an opposite there; None: some do not fit."""
    if isinstance(value, Scaled):
        if _LEAST in value.values:
            msg = "a decimal whose digits are the smallest number of 64 bits"
            raise UnsureError(msg)
        return value
    if isinstance(value, pa.Scalar):
        number = value.as_py()
        if number is None:
            return Scaled(np.zeros(1, np.int64), np.zeros(1, np.bool_), 0)
        digits = int(number.scaleb(kind.scale, _EXACT))
        return Scaled(np.array([digits], np.int64), None, kind.scale) if abs(digits) <= _MOST else None
    pairs = raw(value, np.dtype([("low", "<i8"), ("high", "<i8")]))
    valid, low = valid_of(value), pairs["low"]
    if valid is not None:
        low = np.where(valid, low, 0)
    fits = pairs["high"] == (low >> 63)
    if not (fits if valid is None else fits | ~valid).all() or _LEAST in low:
        return None
    return Scaled(np.ascontiguousarray(low), valid, kind.scale)


def largest(found: Scaled) -> int:
    """The largest size of a value."""
    if not len(found):
        return 0
    return max(abs(int(found.values.min())), abs(int(found.values.max())))


def arrow_of(value: Any, kind: VectorType) -> pa.Array:
    """As Arrow has it, with all digits of the type."""
    if not isinstance(value, Scaled):
        return value
    factor = 10 ** (kind.scale - value.scale)
    if largest(value) * factor > _MOST:
        return _pairs(value, pa.decimal128(38 - (kind.scale - value.scale), value.scale)).cast(arrow_type(kind))
    grown = value if factor == 1 else Scaled(value.values * factor, value.valid, kind.scale)
    return _pairs(grown, arrow_type(kind))


def _pairs(value: Scaled, kind: pa.DataType) -> pa.Array:
    both = np.empty((len(value), 2), np.int64)
    both[:, 0] = value.values
    both[:, 1] = value.values >> 63
    return pa.Array.from_buffers(kind, len(value), [bitmap(value.valid), pa.py_buffer(both)])


def cast_decimal(value: Any, given: VectorType, kind: VectorType) -> Any:
    """Another precision and scale."""
    found = scaled_of(value, given)
    if found is None:
        return _fitted(value.cast(pa.decimal256(given.precision, given.scale)), kind)
    digits, scale = found.values, found.scale
    if scale > kind.scale:
        digits, scale = _halved_up(digits, 10 ** (scale - kind.scale)), kind.scale
    rounded = Scaled(digits, found.valid, scale)
    limit = 10 ** (kind.precision - kind.scale + scale)
    if largest(rounded) < limit:
        return rounded
    return _where(rounded, (digits < limit) & (digits > -limit))


def _halved_up(digits: Any, unit: int) -> Any:
    if unit > _MOST:
        return np.zeros_like(digits)
    whole = digits // unit
    rest = digits - whole * unit  # Below the unit, also for what is negative: half of it is rounded away from zero.
    return whole + np.where(digits >= 0, rest >= unit - unit // 2, rest > unit // 2)


def _where(found: Scaled, is_kept: Any) -> Scaled:
    valid = is_kept if found.valid is None else found.valid & is_kept
    return Scaled(np.where(valid, found.values, 0), valid, found.scale)


def _fitted(wide: pa.Array, kind: VectorType) -> pa.Array:
    """Decimals of 256 bits, in a type of 128: rounded, and NULL where they are too large."""
    if wide.type.scale > kind.scale:
        # Arrow rounds 9223372036854775807.5 of 256 bits down: a carry is lost. These are rare, and rounded one by one.
        return decimals_of(wide.to_pylist(), kind)
    wide = wide.cast(pa.decimal256(76, wide.type.scale))
    limit = pa.scalar(Decimal(10) ** (kind.precision - kind.scale), pa.decimal256(39, 0))
    is_small = pc.and_(pc.less(wide, limit), pc.greater(wide, pc.negate(limit)))
    mask = truths(is_small)
    fitting = wide.filter(is_small).cast(pa.decimal256(76, kind.scale)).cast(arrow_type(kind))
    return fitting if len(fitting) == len(wide) else spread(mask, fitting)


def computed(op: str, left: Any, right: Any, kinds: tuple[VectorType, VectorType, VectorType]) -> Any:
    """A sum, a difference or a product of decimals; the last type is that of the result."""
    one, other = scaled_of(left, kinds[0]), scaled_of(right, kinds[1])
    if one is not None and other is not None:
        found = _product(one, other) if op == "mul" else _sum(one, other, -1 if op == "sub" else 1)
        if found is not None:
            scale = kinds[0].scale + kinds[1].scale if op == "mul" else max(kinds[0].scale, kinds[1].scale)
            return cast_decimal(found, VectorType("decimal", 76, scale), kinds[2])
    return _wide(op, arrow_of(left, kinds[0]), arrow_of(right, kinds[1]), kinds)


def _product(one: Scaled, other: Scaled) -> Scaled | None:
    if largest(one) * largest(other) > _MOST:
        return None
    valid = _valid_both(one, other)
    return Scaled(_zeroed(one.values * other.values, valid), valid, one.scale + other.scale)


def _sum(one: Scaled, other: Scaled, sign: int) -> Scaled | None:
    scale = max(one.scale, other.scale)
    factors = [10 ** (scale - each.scale) for each in (one, other)]
    if largest(one) * factors[0] + largest(other) * factors[1] > _MOST:
        return None
    valid = _valid_both(one, other)
    return Scaled(_zeroed(one.values * factors[0] + sign * (other.values * factors[1]), valid), valid, scale)


def _valid_both(one: Scaled, other: Scaled) -> Any:
    """A literal is one value, whatever it stands beside."""
    rows = max(len(one), len(other))
    spreads = [None if each.valid is None else np.broadcast_to(each.valid, rows) for each in (one, other)]
    return both_valid(*spreads)


def _zeroed(values: Any, valid: Any) -> Any:
    return values if valid is None else np.where(valid, values, 0)


def _wide(op: str, left: Any, right: Any, kinds: tuple[VectorType, VectorType, VectorType]) -> pa.Array:
    """With 256 bits, or, where those do not suffice, one by one."""
    digits = kinds[0].precision + kinds[1].precision + 1
    if op != "mul" or digits <= 76:
        function = {"mul": pc.multiply, "add": pc.add, "sub": pc.subtract}[op]
        wide = [
            each.cast(pa.decimal256(kind.precision, kind.scale))
            for each, kind in zip((left, right), kinds, strict=False)
        ]
        return _fitted(function(*wide), kinds[2])
    rows = len(left) if isinstance(left, pa.Array) else len(right)
    pairs = zip(_listed(left, rows), _listed(right, rows), strict=True)
    return decimals_of([None if a is None or b is None else _EXACT.multiply(a, b) for a, b in pairs], kinds[2])


def _listed(value: Any, rows: int) -> list[Decimal | None]:
    return [value.as_py()] * rows if isinstance(value, pa.Scalar) else value.to_pylist()


def decimals_of(values: list[Decimal | None], kind: VectorType) -> pa.Array:
    """Decimals of Python, rounded to the type; NULL for what is too large."""
    unit, limit = Decimal(1).scaleb(-kind.scale), Decimal(10) ** (kind.precision - kind.scale)
    digits = []
    for value in values:
        rounded = None if value is None else value.quantize(unit, context=_EXACT)
        is_fit = rounded is not None and abs(rounded) < limit
        digits.append(int(rounded.scaleb(kind.scale, _EXACT)) if is_fit and rounded is not None else None)
    joined = b"".join((digit or 0).to_bytes(16, "little", signed=True) for digit in digits)
    valid = np.fromiter((digit is not None for digit in digits), np.bool_, len(digits))
    return pa.Array.from_buffers(arrow_type(kind), len(digits), [bitmap(valid), pa.py_buffer(joined)])


def whole(name: str, value: Any, given: VectorType, kind: VectorType) -> Any:
    """floor or ceil."""
    found = scaled_of(value, given)
    if found is None:
        listed = [None if each is None else _rounded(name, each) for each in value.to_pylist()]
        return decimals_of(listed, kind)
    unit = 10**found.scale
    digits = found.values // unit if name == "floor" else -(-found.values // unit)
    return Scaled(digits, found.valid, 0)


def _rounded(name: str, value: Decimal) -> Decimal:
    return value.to_integral_value("ROUND_FLOOR" if name == "floor" else "ROUND_CEILING", _EXACT)
