"""Source columns and the hidden columns beside them, as Arrow batches."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lading.model.rows import OF_FILE
from lading.sources.files.arrays import repeated, strings, texts, whole_numbers
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """How many records a file has, and where it is."""

    file: str
    uri: str
    path_values: Mapping[str, str | None]
    records: int


class ManyShaper:
    """Does for many files at once what RowShaper does for one. Records are counted through all of them, from 0."""

    def __init__(self, schema: pa.Schema, files: Sequence[FileRows], *, tells: Sequence[str] = ()) -> None:
        self._schema, self._files, self._tells = schema, files, tells
        names = [*files[0].path_values]
        paths = [pa.field(name, pa.string()) for name in names]
        self._whole = pa.schema([*schema, *paths, *(TOLD.field(name) for name in tells), *HIDDEN])
        self._paths = [strings([file.path_values[name] for file in files]) for name in names]
        self._keys, self._uris = (strings([getattr(file, name) for file in files]) for name in ("file", "uri"))
        counted = whole_numbers(range(1, max(file.records for file in files) + 1))
        self._numbers = pa.concat_arrays([counted.slice(0, file.records) for file in files])
        self._whose = whole_numbers(_places(files))

    def good(self, columns: Sequence[pa.Array], *, without: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """All records but these, whose values are given without them."""
        numbers, whose = self._numbers, self._whose
        if without:
            is_good = pc.invert(pc.is_in(whole_numbers(range(len(numbers))), whole_numbers(without)))
            numbers, whose = numbers.filter(is_good), whose.filter(is_good)
        for at in range(0, len(numbers), MAX_ROWS):
            some = [column.slice(at, MAX_ROWS) for column in columns]
            count = len(some[0])
            nothing = [pa.nulls(count, pa.binary()), pa.nulls(count, pa.string())]
            yield self._batch(some, numbers.slice(at, MAX_ROWS), whose.slice(at, MAX_ROWS), nothing)

    def bad(self, rows: Sequence[BadRow]) -> pa.RecordBatch:
        """Bad records by their number, as `RowShaper.bad`."""
        places = whole_numbers([row.number for row in rows])
        columns = [pa.nulls(len(rows), field.type) for field in self._schema]
        told = [
            texts([row.raw for row in rows], pa.binary()),
            texts([row.reason.encode() for row in rows], pa.string()),
        ]
        return self._batch(columns, self._numbers.take(places), self._whose.take(places), told)

    def _batch(
        self, columns: Sequence[pa.Array], numbers: pa.Array, whose: pa.Array, told: Sequence[pa.Array]
    ) -> pa.RecordBatch:
        paths = [values.take(whose) for values in self._paths]
        beside = [self._uris.take(whose) if name == OF_FILE else numbers for name in self._tells]
        return pa.RecordBatch.from_arrays(
            [*columns, *paths, *beside, self._keys.take(whose), numbers, *told], schema=self._whole
        )


def _places(files: Sequence[FileRows]) -> array[int]:
    """Of each record the number of its file."""
    found = array("q")
    for number, file in enumerate(files):
        found.extend(array("q", [number]) * file.records)
    return found
