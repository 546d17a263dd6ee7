"""Runs of records that are small enough to be taken apart together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate


def runs(values: Sequence[bytes], size_bytes: int) -> Iterator[Sequence[bytes]]:
    """All values in order, in runs of about that size; a longer value is a run of its own."""
    ends = list(accumulate(map(len, values)))
    first, before = 0, 0
    while first < len(values):
        after = max(first + 1, bisect_right(ends, before + size_bytes, first))
        yield values[first:after]
        first, before = after, ends[after - 1]
