"""Random expressions over rows with everything that is odd, for the reference and for Spark."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

from tests.sql.coercion_reference import (
    REFUSED,
    SIGNS,
    TABLES,
    Between,
    Choose,
    Column,
    Compare,
    Compute,
    Connect,
    Expr,
    In,
    Literal,
    Not,
)

COLUMNS = {
    "t": "text",
    "u": "text",
    "i": "integer",
    "n": "decimal",
    "f": "double",
    "b": "boolean",
    "d": "date",
    "s": "datetime",
}
_TEXTS = [
    "10.5", "1e2", "10", "  7 ", "n/a", "", None, "-3", "0.1", "12d", ".5", "5.", "2024-01-05", "2024-1-5 10:30",
    "true", "no", "1E-3", "-0", "0x1p3", "10.50", "100", "10:30",
]  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """Rows with what is odd in every column."""
    random = Random(7)
    return [
        {
            "t": text,
            "u": random.choice(_TEXTS),
            "i": random.choice([None, 0, 7, 10, -3, 100]),
            "n": random.choice([None, Decimal("10.50"), Decimal("0.10"), Decimal("-3.00")]),
            "f": random.choice([None, 10.5, 0.1, -3.0, 100.0]),
            "b": random.choice([None, True, False]),
            "d": random.choice([None, date(2024, 1, 5), date(2023, 12, 31)]),
            "s": random.choice([None, datetime(2024, 1, 5, 10, 30), datetime(2024, 1, 5)]),  # noqa: DTZ001
        }
        for text in _TEXTS
    ]


class Maker:
    """Random expressions in which nothing is refused."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def condition(self, depth: int) -> Expr:
        pick = self._random.random()
        if depth > 0 and pick < 0.35:
            word = self._random.choice(["AND", "OR"])
            return Connect(word, self.condition(depth - 1), self.condition(depth - 1))
        if depth > 0 and pick < 0.45:
            return Not(self.condition(depth - 1))
        left = self.value(depth - 1)
        if pick < 0.6:
            return In(left, tuple(self._literal(left.kind) for _ in range(self._random.randint(1, 3))))
        if pick < 0.7 and left.kind != "boolean":
            return Between(left, self._literal(left.kind), self._literal(left.kind))
        for _ in range(20):
            right = self.value(depth - 1)
            if TABLES["compared"][left.kind, right.kind] != REFUSED:
                return Compare(self._random.choice(list(SIGNS)), left, right)
        return Compare("=", left, left)

    def value(self, depth: int) -> Expr:
        pick = self._random.random()
        if depth > 0 and pick < 0.3:
            left, right = self.number(depth - 1), self.number(depth - 1)
            is_decimal = TABLES["computed"][left.kind, right.kind] == "decimal"
            return Compute(self._random.choice("+-*" if is_decimal else "+-*/%"), left, right)
        if depth > 0 and pick < 0.55:
            return self._choice(depth - 1)
        name = self._random.choice([*COLUMNS, "t", "t", "u"])
        return Column(name, COLUMNS[name])

    def number(self, depth: int) -> Expr:
        for _ in range(20):
            found = self.value(depth)
            if found.kind in ("text", "integer", "decimal", "double", "boolean"):
                return found
        return Column("t", "text")

    def _choice(self, depth: int) -> Expr:
        values = [self.value(depth)]
        for _ in range(40):
            more = self.value(depth)
            # How a double is written as a text is Spark's own affair.
            if len(values) < 3 and not {"double", "text"} <= {more.kind, *(value.kind for value in values)}:
                kinds = [*(value.kind for value in values), more.kind]
                if all(TABLES["one of"][kind, other] != REFUSED for kind in kinds for other in kinds):
                    values.append(more)
        *first, default = values
        word = self._random.choice(["CASE", "IF", "COALESCE", "SIMPLE"])
        if not first or (word == "IF" and len(first) != 1):
            word = "CASE" if first else "COALESCE"
        if word == "SIMPLE":
            operand = Column("t", "text")
            pairs = tuple((self._literal("text"), value) for value in first)
            return Choose("CASE", pairs, default, operand)
        return Choose(word, tuple((self.condition(depth), value) for value in first), default)

    def _literal(self, kind: str) -> Expr:
        """One that may stand beside a value."""
        number = self._random.choice(["10", "7", "0", "100", "10.5", "0.10", "3.25"])
        if kind in ("date", "datetime"):
            return Literal("date '2024-01-05'", "date", date(2024, 1, 5))
        if kind == "boolean":
            return Literal("true", "boolean", True)
        return Literal(
            number, "decimal" if "." in number else "integer", Decimal(number) if "." in number else int(number)
        )
