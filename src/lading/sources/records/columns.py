"""Arrow arrays from Python values. As in `files.arrays`, without `pa.array`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from types import NoneType
from typing import Any

import pyarrow as pa

from lading.errors import ConfigError
from lading.sources.files.arrays import doubles, strings, texts, whole_numbers


def text_column(values: Sequence[str | int | float | None]) -> pa.Array:
    """Text of strings, numbers, booleans and nulls. Doubles are written in the shortest way."""
    kinds = set(map(type, values)) - {NoneType}
    if kinds == {str}:
        return _filled(values, "", _joined)
    if kinds == {float}:
        return _filled(values, 0.0, lambda filled: doubles(filled).cast(pa.string()))
    if kinds == {bool}:
        return _filled(values, False, lambda filled: _joined([_word(value) for value in filled]))
    if kinds == {int}:
        return _filled(values, 0, _digits)
    return _mixed([_plain(value) for value in values])


def _mixed(values: Sequence[str | float | None]) -> pa.Array:
    """Doubles are written by Arrow, as they are in a column of doubles."""
    numbers = [value for value in values if isinstance(value, float)]
    written = iter(doubles(numbers).cast(pa.string()).to_pylist()) if numbers else iter(())
    return strings([next(written) if isinstance(value, float) else value for value in values])


def sparse(count: int, found: Mapping[int, bytes], kind: pa.DataType) -> pa.Array:
    """Strings or binaries at a few places and nulls between them."""
    if not found:
        return pa.nulls(count, kind)
    values = texts([found.get(place, b"") for place in range(count)], kind)
    return _nullable(values, [place in found for place in range(count)])


def column_of(kind: pa.DataType, values: Sequence[Any] | pa.Array) -> pa.Array:
    """One column of metadata. Arrays are taken as they are."""
    if isinstance(values, pa.Array):
        return values
    if pa.types.is_string(kind):
        return strings(values)
    if pa.types.is_binary(kind):
        return _filled(values, b"", lambda filled: texts(filled, kind))
    if pa.types.is_float64(kind):
        return _filled(values, 0.0, doubles)
    if pa.types.is_boolean(kind):
        return _filled(values, False, lambda filled: _from_buffer(kind, len(filled), _bits(filled)))
    code = _code(kind)
    return _filled(values, 0, lambda filled: _from_buffer(kind, len(filled), pa.py_buffer(array(code, filled))))


def _code(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind) or kind == pa.int64():
        return "q"
    if kind == pa.int32():
        return "i"
    msg = f"A column of metadata cannot be of the type {kind}"
    raise ConfigError(msg, left="Nothing was read.", todo="Hand over an Arrow array.")


def _from_buffer(kind: pa.DataType, count: int, content: pa.Buffer) -> pa.Array:
    return pa.Array.from_buffers(kind, count, [None, content])


def _filled(values: Sequence[Any], filler: Any, build: Callable[[Sequence[Any]], pa.Array]) -> pa.Array:
    """Nulls are taken out before an array is built and put back into it."""
    if None not in values:
        return build(values)
    filled = build([filler if value is None else value for value in values])
    return _nullable(filled, [value is not None for value in values])


def _nullable(values: pa.Array, is_there: Sequence[bool]) -> pa.Array:
    """The same values, but null where nothing is there. For arrays without nulls that are not slices."""
    return pa.Array.from_buffers(values.type, len(values), [_bits(is_there), *values.buffers()[1:]])


def _bits(values: Sequence[bool]) -> pa.Buffer:
    digits = "".join("1" if value else "0" for value in reversed(values)) or "0"
    return pa.py_buffer(int(digits, 2).to_bytes((len(values) + 7) // 8, "little"))


def _joined(values: Sequence[str]) -> pa.Array:
    """Strings, without a bytes object for each where they are plain."""
    text = "".join(values)
    if not text.isascii():
        return texts([value.encode() for value in values], pa.string())
    offsets = array("i", accumulate(map(len, values), initial=0))
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(text.encode())])


def _digits(values: Sequence[int]) -> pa.Array:
    try:
        return whole_numbers(values).cast(pa.string())
    except OverflowError:
        return _joined([str(value) for value in values])


def _word(value: bool) -> str:
    return "true" if value else "false"


def _plain(value: str | int | float | None) -> str | float | None:
    if isinstance(value, bool):
        return _word(value)
    return str(value) if isinstance(value, int) else value
