"""Comparisons and arithmetic, as Spark has them with ANSI mode off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lading.pipeline.vector import decimals
from lading.pipeline.vector.arrays import (
    Scaled,
    arrow_type,
    both_valid,
    conditions,
    dtype,
    literal,
    made,
    raw,
    truth,
    valid_of,
)
from lading.sql.expressions.vector_nodes import Node, VectorType

_FLOATS = ("float", "double")
_COMPARISONS = {"eq": pc.equal, "lt": pc.less, "le": pc.less_equal}
_COMPUTED = {"add": pc.add, "sub": pc.subtract, "mul": pc.multiply}
_BY_NUMPY = {"eq": np.equal, "lt": np.less, "le": np.less_equal}


def compare(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """`=`, `<` and `<=`: NaN is equal to itself and larger than all others."""
    left, right = args
    if kinds[0].is_decimal:
        return _compare_decimals(node.op, left, right, kinds[0])
    found = _COMPARISONS[node.op](left, right)
    if kinds[0].name not in _FLOATS:
        return found
    nans = [pc.is_nan(each) for each in args]
    if not any(pc.any(each).as_py() for each in nans):
        return found
    if node.op == "eq":
        return pc.or_(found, pc.and_(*nans))
    # NaN is last: nothing is after it, and all others are before.
    first = pc.invert(nans[0]) if node.op == "lt" else truth(True)
    return pc.or_(found, pc.and_(first, nans[1]))


def _compare_decimals(op: str, left: Any, right: Any, kind: VectorType) -> Any:
    pair = [decimals.scaled_of(each, kind) for each in (left, right)]
    if pair[0] is None or pair[1] is None:
        return _COMPARISONS[op](*(decimals.arrow_of(each, kind) for each in (left, right)))
    scale = max(each.scale for each in pair if each is not None)
    grown = [_grown(each, scale) for each in pair if each is not None]
    if grown[0] is None or grown[1] is None:
        return _COMPARISONS[op](*(decimals.arrow_of(each, kind) for each in (left, right)))
    rows = max(
        len(left) if not isinstance(left, pa.Scalar) else 1, len(right) if not isinstance(right, pa.Scalar) else 1
    )
    valid = both_valid(
        *(None if each is None or each.valid is None else np.broadcast_to(each.valid, rows) for each in pair)
    )
    return conditions(np.broadcast_to(_BY_NUMPY[op](grown[0], grown[1]), rows), valid)


def _grown(value: Scaled, scale: int) -> Any:
    factor = 10 ** (scale - value.scale)
    return value.values * factor if decimals.largest(value) * factor < 2**63 else None


def same(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """`<=>`: NULL is equal to NULL."""
    equal = compare(Node("eq", node.type), args, kinds)
    nulls = [is_null(each) for each in args]
    neither = pc.and_(pc.invert(nulls[0]), pc.invert(nulls[1]))
    return pc.or_(pc.and_(neither, pc.fill_null(equal, truth(False))), pc.and_(*nulls))


def is_null(value: Any) -> Any:
    """Where there is no value."""
    if isinstance(value, Scaled):
        return conditions(np.zeros(len(value), np.bool_) if value.valid is None else ~value.valid)
    return pc.is_null(value)


def compute(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """`+`, `-` and `*`: integers that are too large begin again from the other end."""
    if node.type.is_decimal:
        return decimals.computed(node.op, args[0], args[1], (kinds[0], kinds[1], node.type))
    return _COMPUTED[node.op](*args)


def divide(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """`/` of doubles: NULL by zero."""
    zero = pc.equal(args[1], literal(0.0, kinds[1]))
    return pc.divide(args[0], pc.if_else(zero, literal(None, kinds[1]), args[1]))


def remainder(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """`%` of integers: NULL by zero, and the sign of what is divided."""
    zero = pc.equal(args[1], literal(0, kinds[1]))
    divisor = pc.if_else(zero, literal(None, kinds[1]), args[1])
    rows = max(len(each) for each in (args[0], divisor) if isinstance(each, pa.Array))
    pair = [each if isinstance(each, pa.Array) else pa.repeat(each, rows) for each in (args[0], divisor)]
    valid = both_valid(*(valid_of(each) for each in pair))
    values = [raw(each, dtype(node.type)) for each in pair]
    below = (
        np.where(values[1] == 0, 1, values[1]) if valid is None else np.where(valid & (values[1] != 0), values[1], 1)
    )
    return made(np.fmod(values[0], below.astype(values[1].dtype)), valid, arrow_type(node.type))


def negate(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """`-x`."""
    if node.type.is_decimal:
        found = decimals.scaled_of(args[0], node.type)
        return Scaled(-found.values, found.valid, found.scale) if found is not None else pc.negate(args[0])
    return pc.negate(args[0])


def absolute(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """abs: the smallest integer stays what it is."""
    return pc.abs(args[0])


def whole(node: Node, args: list[Any], kinds: list[VectorType]) -> Any:
    """floor and ceil of decimals and doubles."""
    if node.type.is_decimal:
        return decimals.whole(node.op, args[0], kinds[0], node.type)
    rounded = (np.floor if node.op == "floor" else np.ceil)(raw(args[0], np.float64))
    with np.errstate(invalid="ignore"):
        rounded = np.where(np.isnan(rounded), 0.0, rounded)
        cut = np.where(
            rounded >= 2.0**63, np.int64(2**63 - 1), np.where(rounded < 2.0**63, rounded, 0).astype(np.int64)
        )
        cut = np.where(rounded < -(2.0**63), np.int64(-(2**63)), cut)
    return made(cut.astype(np.int64), valid_of(args[0]), pa.int64())
