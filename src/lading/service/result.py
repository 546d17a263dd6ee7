"""What a statement answers: columns and rows, or a word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The answer to one statement: its columns and rows, or a message."""

    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[Any, ...]] = ()
    """All of them; those of a long answer are read from a file as they are asked for."""
    message: str = ""

    def dicts(self) -> list[dict[str, Any]]:
        """The rows, each by the names of its columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def done(message: str = "OK") -> Result:
    """A statement without rows."""
    return Result(message=message)


def table(columns: Sequence[str], rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> Result:
    """Rows, given as dicts or in order."""
    shaped = [tuple(row[name] for name in columns) if isinstance(row, Mapping) else tuple(row) for row in rows]
    return Result(columns=tuple(columns), rows=tuple(shaped))
