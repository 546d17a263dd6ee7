"""Rows of a long answer: the first in memory, the others in a file that is gone with the answer."""

from __future__ import annotations

import pickle
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, overload

Row = tuple[Any, ...]

Portion = tuple[list[Row], int]
"""Rows that came together, and about how many bytes they take."""

IN_MEMORY = 10_000
"""Rows of which a service keeps no file."""
IN_MEMORY_BYTES = 8 * 1024 * 1024


def keep_portions(
    portions: Iterable[Portion], *, in_memory: int = IN_MEMORY, in_memory_bytes: int = IN_MEMORY_BYTES
) -> Sequence[Row]:
    """Take in all rows, however many and however long they are."""
    found: list[list[Row]] = []
    count = size = 0
    rest = iter(portions)
    for rows, takes_bytes in rest:
        found.append(rows)
        count, size = count + len(rows), size + takes_bytes
        if count >= in_memory or size >= in_memory_bytes:
            return LongRows(found, (more for more, _ in rest))
    return tuple(row for rows in found for row in rows)


class LongRows(Sequence[Row]):
    """A sequence that takes little memory. Used by one thread at a time.

    The file has no name: it is gone when this is, and when the process dies. Nobody else can open it, so what is read
    back is what was written.
    """

    def __init__(self, first: Iterable[list[Row]], rest: Iterator[list[Row]]) -> None:
        self._file = tempfile.TemporaryFile(prefix="lading-rows-")  # noqa: SIM115 - closed with this object
        self._closing = weakref.finalize(self, self._file.close)
        self._starts: list[int] = []
        """The number of the first row of each portion."""
        self._places: list[int] = []
        self._length = 0
        self._held = -1
        self._portion: list[Row] = []
        try:
            for rows in chain(first, rest):
                if rows:
                    self._write(rows)
        except BaseException:
            self._closing()
            raise

    def _write(self, rows: list[Row]) -> None:
        self._starts.append(self._length)
        self._places.append(self._file.tell())
        pickle.dump(rows, self._file, protocol=pickle.HIGHEST_PROTOCOL)
        self._length += len(rows)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Row]:
        for number in range(len(self._starts)):
            yield from list(self._read(number))

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        if isinstance(at, slice):
            return [self._one(number) for number in range(*at.indices(self._length))]
        if not -self._length <= at < self._length:
            raise IndexError(at)
        return self._one(at % self._length)

    def _one(self, number: int) -> Row:
        portion = bisect_right(self._starts, number) - 1
        return self._read(portion)[number - self._starts[portion]]

    def _read(self, number: int) -> list[Row]:
        if number != self._held:
            self._file.seek(self._places[number])
            self._portion = pickle.load(self._file)  # noqa: S301 - written by this object, in a file without a name
            self._held = number
        return self._portion
