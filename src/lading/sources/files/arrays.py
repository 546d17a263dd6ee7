"""Arrow arrays from Python values, made from buffers.

Where pandas is installed, the first Python object that pyarrow converts makes it import pandas, which costs every
worker a second. Nothing on the way of a row may use `pa.array` or `pa.scalar`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate

import pyarrow as pa


def whole_numbers(values: Iterable[int]) -> pa.Array:
    """int64, no nulls."""
    packed = array("q", values)
    return pa.Array.from_buffers(pa.int64(), len(packed), [None, pa.py_buffer(packed)])


def doubles(values: Iterable[float]) -> pa.Array:
    """float64, no nulls."""
    packed = array("d", values)
    return pa.Array.from_buffers(pa.float64(), len(packed), [None, pa.py_buffer(packed)])


def texts(values: Sequence[bytes], kind: pa.DataType) -> pa.Array:
    """Strings or binaries, no nulls."""
    return pa.Array.from_buffers(kind, len(values), [None, *_content(values)])


def strings(values: Sequence[str | None]) -> pa.Array:
    """Strings and nulls."""
    encoded = [b"" if value is None else value.encode() for value in values]
    if None not in values:
        return texts(encoded, pa.string())
    bits = "".join("0" if value is None else "1" for value in reversed(values))
    valid = int(bits, 2).to_bytes((len(values) + 7) // 8, "little")
    return pa.Array.from_buffers(pa.string(), len(values), [pa.py_buffer(valid), *_content(encoded)])


def repeated(value: str | None, count: int) -> pa.Array:
    """One string, or null, so many times."""
    if value is None:
        return pa.nulls(count, pa.string())
    return pa.repeat(texts([value.encode()], pa.string())[0], count)


def _content(values: Sequence[bytes]) -> tuple[pa.Buffer, pa.Buffer]:
    offsets = array("i", accumulate(map(len, values), initial=0))
    return pa.py_buffer(offsets), pa.py_buffer(b"".join(values))
