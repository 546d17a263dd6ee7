"""Types of columns by their Spark names: which of two is wider, and what a value needs."""

from __future__ import annotations

import re

MAX_BIGINT = 2**63 - 1
WHOLE = "whole"
"""Whole numbers that a double has exactly: of JSON, where 1 and 1.5 may stand in one field. A column of them alone is
a bigint."""
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_LIMITS = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19, WHOLE: 16}
_REAL = ("float", "double")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_NUMBER = re.compile(r"\s*([+-]?)(\d{1,60})(?:\.(\d{0,60}))?\s*")
_SCIENTIFIC = re.compile(r"\s*[+-]?(?:\d{1,400}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?\s*")
_MAX_FLOAT = 3.4028235677973366e38
MAX_DIGITS = 38


def joined_type(old: str | None, new: str) -> str:
    """The type of a new column that takes values of both types. Texts take everything."""
    if old is None or old == new:
        return new
    return wider_type(old, new) or wider_type(new, old) or _numeric(old, new) or "string"


def wider_type(kind: str, needed: str) -> str | None:
    """The type that a column of `kind` gets so that it also holds `needed`, without changing any value that it has.

    None: there is none. Formats may allow less.
    """
    if kind == needed:
        return kind
    if kind in _WHOLE and needed in _WHOLE:
        return max(kind, needed, key=_WHOLE.index)
    if kind in _REAL and needed in _REAL:
        return "double"
    old, new = _DECIMAL.fullmatch(kind), _DECIMAL.fullmatch(needed)
    if old is not None and new is not None and old[2] == new[2]:
        return max(kind, needed, key=lambda each: int(each[8:].split(",")[0]))
    return None


def _numeric(old: str, new: str) -> str | None:
    """A type for both where neither takes the other as it is."""
    kinds = {old, new}
    if kinds <= {"tinyint", "smallint", "int", WHOLE, "float", "double"}:
        return "double" if kinds & set(_REAL) else "bigint"
    if kinds == {WHOLE, "bigint"}:
        return "bigint"
    found = [_as_decimal(each) for each in (old, new)]
    if None in found:
        return "timestamp" if kinds == {"date", "timestamp"} else None
    whole = max(digits - scale for digits, scale in found if digits is not None)  # type: ignore[misc]
    scale = max(scale for _, scale in found)  # type: ignore[misc]
    return f"decimal({whole + scale},{scale})" if whole + scale <= MAX_DIGITS else None


def _as_decimal(kind: str) -> tuple[int, int] | None:
    if kind in _DIGITS:
        return _DIGITS[kind], 0
    found = _DECIMAL.fullmatch(kind)
    return (int(found[1]), int(found[2])) if found else None


def family_of(kind: str) -> str:
    """Which kind of widening a type can have; empty: none."""
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return "whole"
    if kind in ("float", "double"):
        return "real"
    return "decimal" if kind.startswith("decimal") else ""


def text_type_for(text: str, kind: str) -> str | None:
    """The type that a number as text needs, when it is a wider one than `kind`; None when it fits, or is no number."""
    if kind == "float":
        return "double" if _SCIENTIFIC.fullmatch(text) and _MAX_FLOAT < abs(float(text)) < float("inf") else None
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    number = int(found[1] + found[2])
    if kind in _LIMITS:
        is_whole = not (found[3] or "").strip("0")
        needed = next((each for each in _WHOLE if -_LIMITS[each] <= number < _LIMITS[each]), None) if is_whole else None
        return needed if needed is not None and _WHOLE.index(needed) > _WHOLE.index(kind) else None
    known = _DECIMAL.fullmatch(kind)
    if known is None:
        return None
    digits, scale = len(str(abs(number))), int(known[2])
    return f"decimal({digits + scale},{scale})" if int(known[1]) < digits + scale <= MAX_DIGITS else None
