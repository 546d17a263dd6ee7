"""Spark's rules for types, as far as the vector path follows them, with ANSI mode off."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from lading.sql.expressions.vector_nodes import VectorType

MAX_DIGITS = 38
_MIN_SCALE = 6
"""So many digits behind the point are kept when a result has too many."""
BOOLEAN, STRING, BINARY, VOID = (VectorType(name) for name in ("boolean", "string", "binary", "void"))
TINYINT, SMALLINT, INT, BIGINT = (VectorType(name) for name in ("tinyint", "smallint", "int", "bigint"))
FLOAT, DOUBLE = VectorType("float"), VectorType("double")
DATE, TIMESTAMP, NTZ = VectorType("date"), VectorType("timestamp"), VectorType("timestamp_ntz")
INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)
FLOATS = (FLOAT, DOUBLE)
TIMES = (DATE, TIMESTAMP, NTZ)
_PLAIN = {each.name: each for each in (BOOLEAN, STRING, BINARY, *INTEGERS, *FLOATS, *TIMES)}
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def decimal(precision: int, scale: int) -> VectorType:
    """A decimal of so many digits, at most as many as there can be."""
    return VectorType("decimal", min(precision, MAX_DIGITS), min(scale, MAX_DIGITS))


def type_named(name: str) -> VectorType | None:
    """The type that Spark calls by a name; None: one that the vector path does not have."""
    short = name.lower().replace(" ", "")
    if found := _DECIMAL.fullmatch(short):
        return decimal(int(found[1]), int(found[2]))
    return _PLAIN.get(short)


def literal_type(written: str) -> VectorType:
    """The type of a number as it is written."""
    if "e" in written.lower():
        return DOUBLE
    number = Decimal(written)
    _, digits, exponent = number.as_tuple()
    if "." not in written:
        if -(2**31) <= number < 2**31:
            return INT
        return BIGINT if -(2**63) <= number < 2**63 else decimal(len(digits), 0)
    scale = -int(exponent)
    return decimal(max(len(digits), scale), scale)


def as_decimal(kind: VectorType, literal: object = None) -> VectorType:
    """The decimal that an integer becomes beside a decimal; a literal takes no more digits than it has."""
    if kind.is_decimal:
        return kind
    return decimal(len(str(abs(literal))), 0) if isinstance(literal, int) else decimal(_DIGITS[kind], 0)


def wider_decimal(left: VectorType, right: VectorType) -> VectorType:
    """One that has room for both. Where there is none, digits behind the point are given up, as Spark does."""
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale) + scale
    return decimal(digits, max(0, scale - max(0, digits - MAX_DIGITS)))


def common_number(left: VectorType, right: VectorType) -> VectorType | None:
    """What two numbers are turned into to be compared, or to stand in one column; None: they are no numbers."""
    if left == right:
        return left
    if not all(each.is_decimal or each in INTEGERS or each in FLOATS for each in (left, right)):
        return None
    if left.is_decimal or right.is_decimal:
        if left in FLOATS or right in FLOATS:
            return DOUBLE
        return wider_decimal(as_decimal(left), as_decimal(right))
    order = (*INTEGERS, *FLOATS)
    return max(left, right, key=order.index)


def common_type(kinds: Sequence[VectorType]) -> VectorType | None:
    """The type of a CASE or COALESCE with values of these; None: Spark has a rule that is not followed here."""
    known = [kind for kind in kinds if kind != VOID]
    if not known:
        return VOID
    found: VectorType | None = known[0]
    for kind in known[1:]:
        found = None if found is None else common_number(found, kind)
    return found


def computed_decimal(op: str, left: VectorType, right: VectorType) -> VectorType:
    """The type of a sum, a difference, a product or a remainder of two decimals."""
    whole = [each.precision - each.scale for each in (left, right)]
    scale = max(left.scale, right.scale)
    if op == "mul":
        return _adjusted(left.precision + right.precision + 1, left.scale + right.scale)
    if op == "mod":
        return _adjusted(min(whole) + scale, scale)
    return _adjusted(max(whole) + scale + 1, scale)


def _adjusted(precision: int, scale: int) -> VectorType:
    """Digits before the point are kept, those behind it are given up down to a few."""
    if precision <= MAX_DIGITS:
        return VectorType("decimal", precision, scale)
    whole = precision - scale
    return VectorType("decimal", MAX_DIGITS, max(MAX_DIGITS - whole, min(scale, _MIN_SCALE)))
