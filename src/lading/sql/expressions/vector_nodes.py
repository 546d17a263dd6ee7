"""A mapping as a list of nodes that a task runs over Arrow arrays: no text, no parser, cheap to send and to load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class VectorType:
    """A type of Spark's SQL, exactly."""

    name: str
    precision: int = 0
    """Digits of a decimal."""
    scale: int = 0

    @property
    def is_decimal(self) -> bool:
        return self.name == "decimal"

    @property
    def spark_name(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.is_decimal else self.name


@dataclass(frozen=True, slots=True)
class Node:
    """One value for each row. Nodes name each other by their number, and only earlier ones: there is no recursion."""

    op: str
    type: VectorType
    args: tuple[int, ...] = ()
    value: Any = None
    """What an operation needs beside its arguments: the name of a column, a literal, the fields of a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorPlan:
    """The whole mapping of a job."""

    nodes: tuple[Node, ...]
    columns: tuple[tuple[str, int], ...]
    """What comes out: names, and the nodes that fill them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a mapping cannot take the vector path."""

    part: str
    """`column price`, `where`."""
    why: str
