"""Source columns and the hidden columns beside them, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lading.model.rows import OF_FILE
from lading.sources.files.arrays import repeated, texts, whole_numbers
from lading.sources.files.spec import TOLD
from lading.sources.hidden import HIDDEN

MAX_ROWS = 64 * 1024
"""Rows of one batch. Bounds what the columns beside short rows take."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record that could not be taken apart."""

    number: int
    raw: bytes
    reason: str


class RowShaper:
    """Puts the hidden columns and those of the path beside what a file gave."""

    def __init__(
        self,
        schema: pa.Schema,
        file: str,
        path_values: dict[str, str | None],
        *,
        rows_before: int = 0,
        tells: Sequence[str] = (),
        uri: str = "",
    ) -> None:
        """`rows_before`: rows of the file that others have read; the first one here is numbered after them. `tells`:
        what is asked of `_file`, which is the `uri`, and `_row`."""
        self._file = file
        self._path_values = path_values
        self._before = rows_before
        self._tells, self._uri = tells, uri
        self.schema = schema
        path_fields = [pa.field(name, pa.string()) for name in path_values]
        self.whole = pa.schema([*schema, *path_fields, *(TOLD.field(name) for name in tells), *HIDDEN])
        self._numbers = whole_numbers(())

    def widened(self, schema: pa.Schema) -> RowShaper:
        """The same for other columns of the file."""
        return RowShaper(
            schema, self._file, self._path_values, rows_before=self._before, tells=self._tells, uri=self._uri
        )

    def good(self, columns: Sequence[pa.Array], first: int, *, without: Sequence[int] = ()) -> Iterator[pa.RecordBatch]:
        """Rows that are numbered from `first`, leaving out the numbers of bad ones between them."""
        count = len(columns[0])
        numbers = self._count(first, count + len(without))
        if without:
            numbers = numbers.filter(pc.invert(pc.is_in(numbers, whole_numbers(without))))
        for at in range(0, count, MAX_ROWS):
            yield self._good([column.slice(at, MAX_ROWS) for column in columns], numbers.slice(at, MAX_ROWS))

    def numbered(self, columns: Sequence[pa.Array], numbers: Sequence[int]) -> pa.RecordBatch:
        """Rows with numbers that are given one by one."""
        return self._good(columns, whole_numbers(numbers))

    def _good(self, columns: Sequence[pa.Array], numbers: pa.Array) -> pa.RecordBatch:
        count = len(numbers)
        return self._batch(columns, numbers, pa.nulls(count, pa.binary()), pa.nulls(count, pa.string()))

    def bad(self, rows: Sequence[BadRow]) -> pa.RecordBatch:
        """Bad rows: no values, but their text and the reason."""
        columns = [pa.nulls(len(rows), field.type) for field in self.schema]
        return self._batch(
            columns,
            whole_numbers([row.number for row in rows]),
            texts([row.raw for row in rows], pa.binary()),
            texts([row.reason.encode() for row in rows], pa.string()),
        )

    def _count(self, first: int, count: int) -> pa.Array:
        if len(self._numbers) < count:
            self._numbers = whole_numbers(range(count))
        return pc.add(self._numbers.slice(0, count), whole_numbers([first])[0])

    def _batch(self, columns: Sequence[pa.Array], numbers: pa.Array, raw: pa.Array, error: pa.Array) -> pa.RecordBatch:
        count = len(numbers)
        numbers = pc.add(numbers, whole_numbers([self._before])[0]) if self._before else numbers
        paths = [repeated(value, count) for value in self._path_values.values()]
        told = [repeated(self._uri, count) if name == OF_FILE else numbers for name in self._tells]
        hidden = [repeated(self._file, count), numbers, raw, error]
        return pa.RecordBatch.from_arrays([*columns, *paths, *told, *hidden], schema=self.whole)
