"""What a run of records gave, before it is known where the records are from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Flaw:
    """A row that could not be taken apart."""

    raw: bytes
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Rows of a run of records, in the order of the records."""

    records: int
    """Length of the run."""
    rows: int
    columns: Sequence[pa.Array]
    """One array of strings per source column, null where a row is bad."""
    owners: Sequence[int] | None = None
    """For each row the record it is from, counted from 0 within the run. None: each record gave one row."""
    flaws: dict[int, Flaw] = field(default_factory=dict)
    """The bad rows by their place among the rows."""


class Decoder(Protocol):
    """Takes records of one kind apart.

    Laws: the runs that come back cover all values in order, none twice; the same values give the same rows, however
    they are cut into calls.
    """

    def take(self, values: Sequence[bytes]) -> Iterator[Taken]:
        """The rows of some records. No value is empty."""
        ...


def runs(values: Sequence[bytes], size_bytes: int) -> Iterator[Sequence[bytes]]:
    """All values in order, in runs of about that size; a longer value is a run of its own."""
    ends = list(accumulate(map(len, values)))
    first, before = 0, 0
    while first < len(values):
        after = max(first + 1, bisect_right(ends, before + size_bytes, first))
        yield values[first:after]
        first, before = after, ends[after - 1]
