"""What expressions give, in plain Python, written from the tables of `docs/coercions.md` and from nothing else."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent.parent / "docs" / "coercions.md"
REFUSED = "refused"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_ODD = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)
_TIME = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)(?:[ T](\d\d):(\d\d)(?::(\d\d))?)?")
_TRUTHS = {"true": True, "t": True, "yes": True, "y": True, "1": True}
_LIES = {"false": False, "f": False, "no": False, "n": False, "0": False}
WIDE = (38, 6)


def tables() -> dict[str, dict[tuple[str, str], str]]:
    """The tables of the page that say what stands beside what, by their first word."""
    found: dict[str, dict[tuple[str, str], str]] = {}
    for block in PAGE.read_text().split("\n\n"):
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines() if line[0] == "|"]
        if lines and lines[0][0] in ("compared", "computed", "one of"):
            head, _, *rows = lines
            cells = {(row[0], name): cell for row in rows for name, cell in zip(head[1:], row[1:], strict=True)}
            found[head[0]] = cells
    return found


TABLES = tables()


@dataclass(frozen=True)
class Outcome:
    """A value, and whether something that was needed for it could not be read."""

    value: Any
    failed: bool = False


@dataclass(frozen=True)
class Reading:
    """How texts beside numbers are read: (digits, digits behind the point) of a decimal, or None for doubles."""

    exact: tuple[int, int] | None = None


def read(value: Any, wanted: str, digits: tuple[int, int] = WIDE) -> Any:
    """A value as another type; None for what cannot be read."""
    if value is None:
        return None
    if isinstance(value, str):
        return _read_text(value.strip(), wanted, digits) if wanted != "text" else value
    if wanted == "text":
        return _written(value)
    if wanted == "double":
        return float(value)
    if wanted in ("decimal", "integer"):
        return value if isinstance(value, Decimal) else int(value)
    if wanted == "boolean":
        return bool(value)
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001
    return value if wanted == "date" else moment.replace(tzinfo=UTC) if wanted == "timestamp" else moment


def _read_text(text: str, wanted: str, digits: tuple[int, int]) -> Any:
    if wanted == "boolean":
        return (_TRUTHS | _LIES).get(text.lower())
    if wanted in ("datetime", "timestamp"):
        found = _TIME.fullmatch(text)
        if found is None:
            return None
        try:
            moment = datetime(*(int(part or 0) for part in found.groups()))  # type: ignore[arg-type]  # noqa: DTZ001
        except ValueError:
            return None
        return moment.replace(tzinfo=UTC) if wanted == "timestamp" else moment
    if wanted == "double":
        return float(text) if _NUMBER.fullmatch(text) or _ODD.fullmatch(text) else None
    return rounded(Decimal(text), digits) if _NUMBER.fullmatch(text) else None


def rounded(number: Decimal, digits: tuple[int, int]) -> Decimal | None:
    precision, scale = digits
    with localcontext() as context:
        context.prec = 100
        try:
            found = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
        except InvalidOperation:
            return None
    return found if abs(found) < Decimal(10) ** (precision - scale) else None


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return str(value)


class Expr:
    """An expression: its text, its type, and what it gives for a row."""

    kind: str

    def sql(self) -> str:
        raise NotImplementedError

    def run(self, row: Mapping[str, Any], reading: Reading) -> Outcome:
        raise NotImplementedError

    is_wide = False
    """A decimal that was computed, beside which texts are decimals."""


@dataclass(frozen=True)
class Column(Expr):
    name: str
    kind: str

    def sql(self) -> str:
        return self.name

    def run(self, row: Mapping[str, Any], reading: Reading) -> Outcome:
        return Outcome(row[self.name])


@dataclass(frozen=True)
class Literal(Expr):
    text: str
    kind: str
    value: Any

    def sql(self) -> str:
        return self.text

    def run(self, row: Mapping[str, Any], reading: Reading) -> Outcome:
        return Outcome(self.value)


def _brought(part: Expr, row: Mapping[str, Any], reading: Reading, wanted: str, digits: tuple[int, int]) -> Outcome:
    given = part.run(row, reading)
    value = read(given.value, wanted, digits)
    return Outcome(value, given.failed or (value is None and given.value is not None))


def _common(table: str, parts: Sequence[Expr], reading: Reading) -> tuple[str, tuple[int, int]]:
    kind = parts[0].kind
    for part in parts[1:]:
        kind = TABLES[table][kind, part.kind]
    has_text = any(part.kind == "text" for part in parts)
    if kind == "double" and has_text and not any(part.kind == "double" for part in parts):
        if reading.exact:
            return "decimal", reading.exact
        if table == "compared" and any(part.is_wide for part in parts):
            return "decimal", WIDE
    return kind, WIDE


SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class Compare(Expr):
    sign: str
    left: Expr
    right: Expr
    kind: str = "boolean"

    def sql(self) -> str:
        return f"({self.left.sql()} {self.sign} {self.right.sql()})"

    def run(self, row: Mapping[str, Any], reading: Reading) -> Outcome:
        wanted, digits = _common("compared", (self.left, self.right), reading)
        left = _brought(self.left, row, reading, wanted, digits)
        right = _brought(self.right, row, reading, wanted, digits)
        is_null = left.value is None or right.value is None
        return Outcome(None if is_null else SIGNS[self.sign](left.value, right.value), left.failed or right.failed)


@dataclass(frozen=True)
class In(Expr):
    needle: Expr
    values: tuple[Expr, ...]
    kind: str = "boolean"

    def sql(self) -> str:
        return f"({self.needle.sql()} IN ({', '.join(value.sql() for value in self.values)}))"

    def run(self, row: Mapping[str, Any], reading: Reading) -> Outcome:
        wanted, digits = _common("compared", (self.needle, *self.values), reading)
        needle, *values = (_brought(part, row, reading, wanted, digits) for part in (self.needle, *self.values))
        failed = needle.failed or any(value.failed for value in values)
        if needle.value is None:
            return Outcome(None, failed)
        return Outcome(any(needle.value == value.value for value in values), failed)


@dataclass(frozen=True)
class Between(Expr):
    middle: Expr
    low: Expr
    high: Expr
    kind: str = "boolean"

    def sql(self) -> str:
        return f"({self.middle.sql()} BETWEEN {self.low.sql()} AND {self.high.sql()})"

    def run(self, row: Mapping[str, Any], reading: Reading) -> Outcome:
        wanted, digits = _common("compared", (self.middle, self.low, self.high), reading)
        middle, low, high = (
            _brought(part, row, reading, wanted, digits) for part in (self.middle, self.low, self.high)
        )
        failed = middle.failed or low.failed or high.failed
        return Outcome(None if middle.value is None else low.value <= middle.value <= high.value, failed)


@dataclass(frozen=True)
class Compute(Expr):
    sign: str
    left: Expr
    right: Expr

    @property
    def kind(self) -> str:  # type: ignore[override]  # it depends on the parts
        found = TABLES["computed"][self.left.kind, self.right.kind]
        return "double" if self.sign == "/" else found

    @property
    def is_wide(self) -> bool:  # type: ignore[override]  # it depends on the parts
        return self.kind == "decimal"

    def sql(self) -> str:
        return f"({self.left.sql()} {self.sign} {self.right.sql()})"

    def run(self, row: Mapping[str, Any], reading: Reading) -> Outcome:
        wanted, digits = _common("computed", (self.left, self.right), reading)
        left = _brought(self.left, row, reading, wanted, digits)
        right = _brought(self.right, row, reading, wanted, digits)
        failed = left.failed or right.failed
        if left.value is None or right.value is None:
            return Outcome(None, failed)
        return Outcome(_compute(self.sign, left.value, right.value), failed)


def _compute(sign: str, left: Any, right: Any) -> Any:
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        left, right = Decimal(left), Decimal(right)
    with localcontext() as context:
        context.prec = 60
        if sign == "+":
            return left + right
        if sign == "-":
            return left - right
        if sign == "*":
            return left * right
    if right == 0:
        return None
    return left / right if sign == "/" else math.fmod(left, right)


@dataclass(frozen=True)
class Connect(Expr):
    word: str
    left: Expr
    right: Expr
    kind: str = "boolean"

    def sql(self) -> str:
        return f"({self.left.sql()} {self.word} {self.right.sql()})"

    def run(self, row: Mapping[str, Any], reading: Reading) -> Outcome:
        sides = (self.left.run(row, reading), self.right.run(row, reading))
        decisive = self.word == "OR"
        if any(side.value is decisive and not side.failed for side in sides):
            return Outcome(decisive)
        failed = any(side.failed for side in sides)
        if any(side.value is decisive for side in sides):
            return Outcome(decisive, failed)
        return Outcome(None if any(side.value is None for side in sides) else not decisive, failed)


@dataclass(frozen=True)
class Not(Expr):
    inner: Expr
    kind: str = "boolean"

    def sql(self) -> str:
        return f"(NOT {self.inner.sql()})"

    def run(self, row: Mapping[str, Any], reading: Reading) -> Outcome:
        found = self.inner.run(row, reading)
        return Outcome(None if found.value is None else not found.value, found.failed)


@dataclass(frozen=True)
class Choose(Expr):
    """CASE WHEN, CASE x WHEN, IF and COALESCE: one of several."""

    word: str
    branches: tuple[tuple[Expr, Expr], ...]
    """Conditions and values. For COALESCE only values count."""
    default: Expr
    operand: Expr | None = None

    @property
    def _values(self) -> tuple[Expr, ...]:
        return (*(value for _, value in self.branches), self.default)

    @property
    def kind(self) -> str:  # type: ignore[override]  # it depends on the parts
        return _common("one of", self._values, Reading())[0]

    @property
    def is_wide(self) -> bool:  # type: ignore[override]  # it depends on the parts
        return self.kind == "decimal" and (
            any(value.is_wide for value in self._values) or len({value.kind for value in self._values}) > 1
        )

    def sql(self) -> str:
        if self.word == "COALESCE":
            return f"coalesce({', '.join(value.sql() for value in self._values)})"
        if self.word == "IF":
            ((condition, value),) = self.branches
            return f"if({condition.sql()}, {value.sql()}, {self.default.sql()})"
        whens = " ".join(f"WHEN {condition.sql()} THEN {value.sql()}" for condition, value in self.branches)
        return f"(CASE {self.operand.sql() if self.operand else ''} {whens} ELSE {self.default.sql()} END)"

    def run(self, row: Mapping[str, Any], reading: Reading) -> Outcome:
        failed = False
        for condition, value in self.branches:
            if self.word == "COALESCE":
                found = self._given(value, row, reading)
                failed = failed or found.failed
                if found.value is not None:
                    return Outcome(found.value, failed)
                continue
            asked = Compare("=", self.operand, condition) if self.operand else condition
            decided = asked.run(row, reading)
            failed = failed or decided.failed
            if decided.value:
                chosen = self._given(value, row, reading)
                return Outcome(chosen.value, failed or chosen.failed)
        last = self._given(self.default, row, reading)
        return Outcome(last.value, failed or last.failed)

    def _given(self, part: Expr, row: Mapping[str, Any], reading: Reading) -> Outcome:
        found = part.run(row, reading)
        return Outcome(read(found.value, self.kind), found.failed)
