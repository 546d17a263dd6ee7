"""Arrow arrays as numpy sees them, and back, without a copy where there need not be one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lading.sql.expressions.vector_nodes import VectorType

VECTOR_UNSURE = "The vector path is not sure of a value"
"""How the stager knows that the batch has to take the general path."""
_EXACT = Context(prec=200)
Ints = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_WIDTHS: dict[str, Any] = {
    "tinyint": np.int8,
    "smallint": np.int16,
    "int": np.int32,
    "bigint": np.int64,
    "float": np.float32,
    "double": np.float64,
    "date": np.int32,
    "timestamp": np.int64,
    "timestamp_ntz": np.int64,
}


class UnsureError(Exception):
    """A value that may be another one in Spark. Nothing is written; the batch takes the general path."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """Decimals whose digits fit 64 bits: `values` over ten to the power of `scale`.

    The scale is at most that of their type. Arrow takes 16 bytes for each, and ten times as long.
    """

    values: npt.NDArray[np.int64]
    valid: Bools | None
    """Which are not NULL; None: all. The others are 0."""
    scale: int

    def __len__(self) -> int:
        return len(self.values)


def arrow_type(kind: VectorType) -> pa.DataType:
    """How a type of Spark is in Arrow."""
    return pa.decimal128(kind.precision, kind.scale) if kind.is_decimal else _PLAIN[kind.name]


def dtype(kind: VectorType) -> Any:
    """The numpy type of what an array of fixed width holds."""
    return _WIDTHS[kind.name]


def raw(array: pa.Array, kind: Any) -> Ints:
    """The values of an array of fixed width; those that are NULL may be anything."""
    if not len(array):
        return np.empty(0, kind)
    width = np.dtype(kind).itemsize
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * width)


def valid_of(array: pa.Array) -> Bools | None:
    """Which values are not NULL; None: all."""
    if not array.null_count:
        return None
    return _bits(array.buffers()[0], array.offset, len(array))


def truths(array: pa.Array) -> Bools:
    """Where a condition is true."""
    if not len(array):
        return np.empty(0, np.bool_)
    found = _bits(array.buffers()[1], array.offset, len(array))
    valid = valid_of(array)
    return found if valid is None else found & valid


def _bits(buffer: pa.Buffer, offset: int, count: int) -> Bools:
    first = offset // 8
    read = np.frombuffer(buffer, np.uint8)[first : (offset + count + 7) // 8]
    bits = np.unpackbits(read, bitorder="little")[offset - 8 * first :][:count]
    return bits.view(np.bool_)


def bitmap(valid: Bools | None) -> pa.Buffer | None:
    """Where values are, as Arrow keeps it."""
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def made(values: Ints, valid: Bools | None, kind: pa.DataType) -> pa.Array:
    """An array of fixed width."""
    return pa.Array.from_buffers(kind, len(values), [bitmap(valid), pa.py_buffer(np.ascontiguousarray(values))])


def conditions(values: Bools, valid: Bools | None = None) -> pa.Array:
    """An array of truths."""
    packed = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [bitmap(valid), packed])


def both_valid(left: Bools | None, right: Bools | None) -> Bools | None:
    """Where two values are."""
    if left is None or right is None:
        return right if left is None else left
    return left & right


def texts(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """Texts or bytes, and nulls. `pa.array` would import pandas, which costs each worker a second."""
    sizes = np.fromiter((len(value or b"") for value in values), np.int64, len(values))
    ends = np.concatenate(([0], np.cumsum(sizes)))
    if ends[-1] >= 2**31:
        msg = "texts of more than two gigabytes in one batch"
        raise UnsureError(msg)
    valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
    joined = b"".join(value or b"" for value in values)
    buffers = [bitmap(valid), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(joined)]
    return pa.Array.from_buffers(kind, len(values), buffers)


def content(array: pa.Array) -> bytes:
    """All bytes of the texts of an array, one behind the other, also those of NULLs."""
    data = array.buffers()[2]
    if data is None or not len(array):
        return b""
    ends = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)
    found: bytes = data.slice(int(ends[0]), int(ends[-1] - ends[0])).to_pybytes()
    return found


def is_ascii(array: pa.Array) -> bool:
    """Whether each letter is one byte. Raises UnsureError for bytes that are no text."""
    if content(array).isascii():
        return True
    check_utf8(array)
    return False


def check_utf8(array: pa.Array) -> None:
    """Raise UnsureError for bytes that are no text: Spark and Arrow see other letters in them."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        msg = "a text that is not UTF-8"
        raise UnsureError(msg) from error


def literal(value: Any, kind: VectorType) -> pa.Scalar:
    """One value. `pa.scalar` would import pandas."""
    there = np.array([value is not None])
    if kind.name in ("string", "binary"):
        return texts([value.encode() if isinstance(value, str) else value], arrow_type(kind))[0]
    if kind.name == "boolean":
        return conditions(np.array([bool(value)]), there)[0]
    if kind.name == "void":
        return pa.nulls(1)[0]
    if kind.is_decimal:
        digits = 0 if value is None else int(value.scaleb(kind.scale, _EXACT))
        buffers = [bitmap(there), pa.py_buffer(digits.to_bytes(16, "little", signed=True))]
        return pa.Array.from_buffers(arrow_type(kind), 1, buffers)[0]
    return made(np.array([0 if value is None else value], dtype(kind)), there, arrow_type(kind))[0]


def truth(value: bool) -> pa.Scalar:
    """True or false."""
    return conditions(np.array([value]))[0]


def full(value: pa.Scalar, rows: int) -> pa.Array:
    """A value, so many times."""
    return pa.nulls(rows, value.type) if not value.is_valid else pa.repeat(value, rows)


def spread(mask: Bools, values: pa.Array) -> pa.Array:
    """Values at the places where the mask is true, NULL elsewhere."""
    return pc.replace_with_mask(pa.nulls(len(mask), values.type), conditions(mask), values)


def merged(mask: Bools, some: pa.Array, others: pa.Array) -> pa.Array:
    """The values of some rows and of the others, in the order of the rows."""
    order = np.where(mask, np.cumsum(mask) - 1, len(some) + np.cumsum(~mask) - 1)
    both = pa.concat_arrays([some, others])
    return both.take(made(order.astype(np.int64), None, pa.int64()))
