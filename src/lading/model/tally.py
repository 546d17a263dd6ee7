"""Counting rows, bytes and files; for one commit, and for the life of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cache
from operator import add, sub
from typing import Any, Self


class _Sum:
    """Adds and subtracts field by field."""

    __slots__ = ()

    def __add__(self, other: Self) -> Self:
        return self._with(other, add)

    def __sub__(self, other: Self) -> Self:
        return self._with(other, sub)

    def _with(self, other: Self, combine: Callable[[Any, Any], Any]) -> Self:
        kind: Any = type(self)
        return kind(**{name: combine(getattr(self, name), getattr(other, name)) for name in _names(kind)})  # type: ignore[no-any-return]


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts(_Sum):
    """Rows by fate."""

    total: int = 0
    loaded: int = 0
    unselected: int = 0
    error: int = 0
    late: int = 0
    """Their event time was before the watermark."""
    duplicate: int = 0
    """Their keys were loaded before, within the horizon."""

    @property
    def adds_up(self) -> bool:
        """Every row has exactly one fate."""
        fates = (self.loaded, self.unselected, self.error, self.late, self.duplicate)
        return min(self.total, *fates) >= 0 and self.total == sum(fates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(_Sum):
    """Everything a commit counts."""

    rows: RowCounts = RowCounts()
    received_bytes: int = 0
    source_files: int = 0
    source_bytes: int = 0
    data_files: int = 0
    data_bytes: int = 0
    written: int = 0
    """Rows of the data files. Those that were loaded, but for jobs that write results: these load rows into windows."""
    ahead: int = 0
    """Rows that were too far ahead of the clock to move the watermark. They have another fate besides."""
    commits: int = 0
    """Commits that loaded something. Opening, edits and takeovers do not count."""


def sum_rows(counts: Iterable[RowCounts]) -> RowCounts:
    """Add up rows by fate."""
    total = RowCounts()
    for count in counts:
        total += count
    return total
