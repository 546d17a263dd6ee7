"""ON of two streams: keys that are equal, and how far apart the event times may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from lading.sql.expressions.sides import column_of_side

_UNITS_US = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
_SHIFTS = {"date_add": 1, "date_sub": -1, "adddate": 1, "subdate": -1}
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.LT: exp.GT}


@dataclass(slots=True)
class StreamCondition:
    """What ON asks for. Event times are those of the columns that are named."""

    keys: list[tuple[exp.Expr, exp.Expr]] = field(default_factory=list)
    """What is equal: of the first stream, and of the second."""
    bounds: dict[tuple[str, str], list[int | None]] = field(default_factory=dict)
    """By the columns of both: how much later than the first the second is, at least and at most, in microseconds."""
    rest: list[exp.Expr] = field(default_factory=list)
    """Everything else."""
    times: dict[tuple[str, str], list[exp.Expr]] = field(default_factory=dict)
    """By the same columns: the conditions that the bounds were read from."""


def read_condition(tree: exp.Expr, left: str, right: str) -> StreamCondition:
    """The parts of a condition whose columns say their sides."""
    found = StreamCondition()
    for part in _conjuncts(tree):
        limits = _limits(part, left, right)
        if limits is not None:
            columns, low, high = limits
            known = found.bounds.setdefault(columns, [None, None])
            known[0] = low if known[0] is None else known[0] if low is None else max(low, known[0])
            known[1] = high if known[1] is None else known[1] if high is None else min(high, known[1])
            found.times.setdefault(columns, []).append(part)
        elif (key := _key(part, left, right)) is not None:
            found.keys.append(key)
        else:
            found.rest.append(part)
    return found


def _conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        yield from _conjuncts(tree.left)
        yield from _conjuncts(tree.right)
    elif isinstance(tree, exp.Between):
        yield exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy())
        yield exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy())
    else:
        yield tree


def _sides(tree: exp.Expr, left: str, right: str) -> set[str]:
    names = [node.name for node in tree.find_all(exp.Column)]
    return {side for name in names for side in (left, right) if column_of_side(name, side) is not None}


def _key(part: exp.Expr, left: str, right: str) -> tuple[exp.Expr, exp.Expr] | None:
    if not isinstance(part, exp.EQ):
        return None
    sides = (_sides(part.left, left, right), _sides(part.right, left, right))
    if sides == ({left}, {right}):
        return part.left, part.right
    return (part.right, part.left) if sides == ({right}, {left}) else None


def _limits(part: exp.Expr, left: str, right: str) -> tuple[tuple[str, str], int | None, int | None] | None:
    """Columns of both sides, and how much later the second is, at least or at most; None: it is no such condition."""
    if not isinstance(part, exp.GTE | exp.GT | exp.LTE | exp.LT | exp.EQ):
        return None
    one, other = _moment(part.left), _moment(part.right)
    word: type[exp.Expr] = type(part)
    if one is None or other is None:
        return None
    if column_of_side(one[0], left) is not None:
        one, other, word = other, one, _FLIPPED.get(word, word)
    if column_of_side(one[0], right) is None or column_of_side(other[0], left) is None:
        return None
    if word is exp.EQ and not (one[1] or other[1]):
        return None  # Two columns that are equal are a key, if nothing says that they are times.
    # second + one[1] <word> first + other[1]
    distance, columns = other[1] - one[1], (other[0], one[0])
    if word is exp.EQ:
        return columns, distance, distance
    if word in (exp.GTE, exp.GT):
        return columns, distance + (word is exp.GT), None
    return columns, None, distance - (word is exp.LT)


def _moment(tree: exp.Expr) -> tuple[str, int] | None:
    """A column, and how far behind it a moment is."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Column):
        return tree.name, 0
    if isinstance(tree, exp.Add | exp.Sub):
        return _shifted(tree.left, tree.right, 1 if isinstance(tree, exp.Add) else -1)
    if isinstance(tree, exp.Anonymous) and tree.name.lower() in _SHIFTS and len(tree.expressions) == 2:
        return _shifted(tree.expressions[0], tree.expressions[1], _SHIFTS[tree.name.lower()])
    return None


def _shifted(tree: exp.Expr, by: exp.Expr, sign: int) -> tuple[str, int] | None:
    if isinstance(tree, exp.Interval) and sign > 0:
        tree, by = by, tree
    moment, length = _moment(tree), _length_us(by)
    return None if moment is None or length is None else (moment[0], moment[1] + sign * length)


def _length_us(tree: exp.Expr) -> int | None:
    """The length of INTERVAL 10 MINUTES. Months and years have none that is always the same."""
    if not isinstance(tree, exp.Interval):
        return None
    value, unit = tree.this, tree.args.get("unit")
    sign = 1
    while isinstance(value, exp.Neg | exp.Paren):
        sign, value = (-sign if isinstance(value, exp.Neg) else sign), value.this
    word = unit.name.upper().removesuffix("S") if unit is not None else ""
    if not isinstance(value, exp.Literal) or word not in _UNITS_US:
        return None
    text = value.name.strip()
    sign, text = (-sign, text[1:]) if text.startswith("-") else (sign, text)
    return sign * int(text) * _UNITS_US[word] if text.isdecimal() and len(text) < 10 else None
