"""Nodes put together: each once, with the casts that Spark would put between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from lading.sql.expressions.vector_nodes import Node, VectorType
from lading.sql.expressions.vector_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOATS,
    INTEGERS,
    STRING,
    TIMES,
    VOID,
    as_decimal,
    common_number,
    common_type,
    computed_decimal,
)

_MOST_NODES = 20_000
_MOST_DEEP = 150


class RefusedError(Exception):
    """Something is not in the set of the vector path. Ends as a Refusal, never as an error of a statement."""


def refuse(what: str) -> NoReturn:
    """Leave something to the general path."""
    msg = f"{what} is not in the vector set"
    raise RefusedError(msg)


class Builder:
    """Nodes in order. The same value asked for twice is one node, so that it is computed once."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._depths: list[int] = []

    def add(self, op: str, kind: VectorType, *args: int, value: Any = None) -> int:
        key = (op, kind, args, repr(value))
        if key not in self._numbers:
            depth = 1 + max((self._depths[arg] for arg in args), default=0)
            if len(self.nodes) >= _MOST_NODES or depth > _MOST_DEEP:
                msg = "it is too long, or nested too deep"
                raise RefusedError(msg)
            self._numbers[key] = len(self.nodes)
            self.nodes.append(Node(op, kind, args, value))
            self._depths.append(depth)
        return self._numbers[key]

    def type(self, node: int) -> VectorType:
        return self.nodes[node].type

    def literal(self, value: Any, kind: VectorType) -> int:
        return self.add("literal", kind, value=value)

    def literal_of(self, node: int) -> Any:
        """The value of a literal; None for other nodes, and for NULL."""
        found = self.nodes[node]
        return found.value if found.op == "literal" else None

    def not_null(self, node: int) -> int:
        return self.add("not", BOOLEAN, self.add("is_null", BOOLEAN, node))

    def cast(self, node: int, kind: VectorType) -> int:
        """As Spark casts by itself: what does not fit is NULL."""
        return node if self.type(node) == kind else self.try_cast(node, kind)

    def try_cast(self, node: int, kind: VectorType) -> int:
        """TRY_CAST."""
        given = self.type(node)
        if given == kind:
            return node
        if given == VOID:
            return self.literal(None, kind)
        if not _can_cast(given, kind):
            refuse(f"a cast from {given.spark_name} to {kind.spark_name}")
        return self.add("cast", kind, node)

    def as_text(self, node: int, *, plain: bool) -> int:
        """CAST AS STRING. `plain`: as TRY_CAST writes decimals, without an exponent."""
        given = self.type(node)
        if given == STRING:
            return node
        if given == VOID:
            return self.literal(None, STRING)
        if given == BINARY:
            refuse("a cast from binary to string")
        return self.add("text", STRING, node, value=plain)

    def truth(self, node: int) -> int:
        """A condition."""
        if self.type(node) == VOID:
            return self.literal(None, BOOLEAN)
        if self.type(node) != BOOLEAN:
            refuse(f"a condition that is a {self.type(node).spark_name}")
        return node

    def compare(self, op: str, left: int, right: int) -> int:
        """A comparison, with both sides of one type."""
        left, right = self._alike(left, right)
        kind = self.type(left)
        if op == "ne":
            return self.add("not", BOOLEAN, self.compare("eq", left, right))
        if op in ("gt", "ge"):
            left, right, op = right, left, {"gt": "lt", "ge": "le"}[op]
        if kind == BINARY or (kind == BOOLEAN and op not in ("eq", "same")):
            refuse(f"a comparison of {kind.spark_name}")
        return self.add(op, BOOLEAN, left, right)

    def _alike(self, left: int, right: int) -> tuple[int, int]:
        one, other = self.type(left), self.type(right)
        if VOID in (one, other):
            kind = other if one == VOID else one
            return self.cast(left, kind), self.cast(right, kind)
        if one == other:
            return left, right
        if one.is_decimal or other.is_decimal:
            one, other = self._beside_decimal(left, other), self._beside_decimal(right, one)
        both = common_number(one, other)
        if both is None:
            refuse(f"{one.spark_name} beside {other.spark_name}")
        return self.cast(left, both), self.cast(right, both)

    def _beside_decimal(self, node: int, other: VectorType) -> VectorType:
        """Integers beside decimals are decimals, and literals among them short ones."""
        kind = self.type(node)
        return as_decimal(kind, self.literal_of(node)) if kind in INTEGERS and other.is_decimal else kind

    def compute(self, op: str, left: int, right: int) -> int:
        """`+ - * / %`, where NULL stands for what cannot be computed."""
        one, other = self.type(left), self.type(right)
        if one.is_decimal or other.is_decimal:
            one, other = self._beside_decimal(left, other), self._beside_decimal(right, one)
        if one.is_decimal and other.is_decimal:
            return self._compute_decimal(op, self.cast(left, one), self.cast(right, other))
        both = common_number(one, other)
        if both is None:
            refuse(f"{op} of {one.spark_name} and {other.spark_name}")
        if op == "div":
            return self.add("div", DOUBLE, self.cast(left, DOUBLE), self.cast(right, DOUBLE))
        if op == "mod" and both in FLOATS:
            refuse(f"% of {both.spark_name}")
        return self.add(op, both, self.cast(left, both), self.cast(right, both))

    def _compute_decimal(self, op: str, left: int, right: int) -> int:
        if op in ("div", "mod"):
            refuse("/ and % of decimals")
        return self.add(op, computed_decimal(op, self.type(left), self.type(right)), left, right)

    def case(self, branches: Sequence[tuple[int, int]], default: int | None) -> int:
        """CASE WHEN … THEN … ELSE … END."""
        last = self.literal(None, VOID) if default is None else default
        values = self.unified([*(value for _, value in branches), last])
        args = [part for (when, _), value in zip(branches, values, strict=False) for part in (self.truth(when), value)]
        return self.add("case", self.type(values[0]), *args, values[-1])

    def unified(self, values: Sequence[int]) -> list[int]:
        """Values of one type."""
        kinds = [self.type(value) for value in values]
        kind = common_type(kinds)
        if kind is None or (kind in FLOATS and any(each.is_decimal for each in kinds)):
            names = ", ".join(dict.fromkeys(each.spark_name for each in kinds if each != VOID))
            refuse(f"one value of {names}")
        return [self.cast(value, kind) for value in values]


def _can_cast(given: VectorType, kind: VectorType) -> bool:
    is_number = given in INTEGERS or given.is_decimal or given in FLOATS
    if kind == STRING or BINARY in (given, kind) or VOID in (given, kind):
        return False
    if given == STRING:
        return kind != VectorType("float")
    if given == BOOLEAN:
        return kind in INTEGERS or kind == DOUBLE
    if given in TIMES or kind in TIMES:
        return given in TIMES and kind in TIMES
    if kind == BOOLEAN:
        return given in INTEGERS
    if kind.is_decimal:
        return given in INTEGERS or given.is_decimal
    return is_number and (kind in INTEGERS or kind in FLOATS) and not (given == BIGINT and kind == VectorType("float"))
