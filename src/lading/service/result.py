"""What a statement answers: columns and rows, or a word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa


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

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table. A column whose values have no common type is one of texts."""
        import pyarrow as pa

        columns = zip(*self.rows, strict=True) if len(self.rows) else ((),) * len(self.columns)
        return pa.Table.from_arrays([_array(values) for values in columns], names=list(self.columns))

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame of pandas."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame


def _array(values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def done(message: str = "OK") -> Result:
    """A statement without rows."""
    return Result(message=message)


def table(columns: Sequence[str], rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> Result:
    """Rows, given as dicts or in order."""
    shaped = [tuple(row[name] for name in columns) if isinstance(row, Mapping) else tuple(row) for row in rows]
    return Result(columns=tuple(columns), rows=tuple(shaped))
