"""Sums and comparisons of constants, as MySQL does them: NULL is infectious, numbers with a point stay exact."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, Overflow, localcontext
from typing import Any

from sqlglot import exp

from lading.mysql.protocol.errors import Fault

Number = int | float | Decimal
_DIGITS = 65
"""Digits of the longest number that is kept exactly."""
_MORE_DIGITS = 4
"""How many digits a quotient has behind the point, more than what is divided."""
_BIGINT, _DECIMAL, _DOUBLE = "BIGINT", "DECIMAL", "DOUBLE"
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_CALCULATIONS: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}
_COMPARISONS: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
_QUOTIENTS = (exp.Div, exp.IntDiv, exp.Mod)
OPERATORS = (*_CALCULATIONS, *_COMPARISONS, *_QUOTIENTS)


def number_of(text: str) -> int | float:
    """A number as it is written alone."""
    if text.isdecimal():
        return int(_checked(text))
    found = float(text)
    if found in (float("inf"), float("-inf")):
        raise Fault(1367, "22007", f"Illegal double '{text[:_DIGITS]}' value found during parsing")
    return found


def exact_of(text: str) -> Number:
    """A number as it is written in a sum."""
    is_exact = text.replace(".", "", 1).isdecimal() and "." in text
    return Decimal(_checked(text)) if is_exact else number_of(text)


def _checked(text: str) -> str:
    if len(text.lstrip("0").replace(".", "")) > _DIGITS:
        raise _out_of_range(_DECIMAL, text)
    return text


def calculate(tree: exp.Expr, left: Number | None, right: Number | None) -> Number | None:
    """One operation of two numbers."""
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    left, right = _wide(left), _wide(right)
    try:
        with localcontext() as context:
            context.prec = 2 * _DIGITS + _MORE_DIGITS
            found = _done(tree, left, right)
    except (OverflowError, InvalidOperation, Overflow) as error:
        raise _out_of_range(_DOUBLE, tree.sql("mysql")) from error
    return _kept(found, tree)


def _wide(value: Number) -> Number:
    return value if not isinstance(value, int) or _SMALLEST <= value <= _LARGEST else Decimal(value)


def _done(tree: exp.Expr, left: Any, right: Any) -> Any:
    if (compare := _COMPARISONS.get(type(tree))) is not None:
        return int(compare(left, right))
    if (operation := _CALCULATIONS.get(type(tree))) is not None:
        return operation(left, right)
    if right == 0:
        return None
    if isinstance(tree, exp.IntDiv):
        return int(Decimal(left) / Decimal(right))
    if isinstance(tree, exp.Mod):
        rest = Decimal(left) % Decimal(right)  # It has the sign of what is divided.
        return type(left)(rest) if type(left) is type(right) else rest
    if isinstance(left, float):
        return left / right
    scale = -_exponent(Decimal(left)) + _MORE_DIGITS
    return (Decimal(left) / Decimal(right)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def _exponent(value: Decimal) -> int:
    found = value.as_tuple().exponent
    return min(found, 0) if isinstance(found, int) else 0


def _kept(found: Number | None, tree: exp.Expr) -> Number | None:
    if isinstance(found, int) and not _SMALLEST <= found <= _LARGEST:
        raise _out_of_range(_BIGINT, tree.sql("mysql"))
    if isinstance(found, float) and found in (float("inf"), float("-inf")):
        raise _out_of_range(_DOUBLE, tree.sql("mysql"))
    if isinstance(found, Decimal) and len(found.as_tuple().digits) > _DIGITS:
        raise _out_of_range(_DECIMAL, tree.sql("mysql"))
    return found


def _out_of_range(kind: str, text: str) -> Fault:
    return Fault(1690, "22003", f"{kind} value is out of range in '{text[:_DIGITS]}'")
