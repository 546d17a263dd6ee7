"""One row for each element of an array: what `explode(column)` makes of the rows that a source reads.

It stands between the source and everything else. Positions are those of the source, which counts records; from here on
each element is a row of its own, which is loaded, left out or bad, and counted. A record whose array is empty or NULL
holds no row: it is counted as left out. With `keeps_empty` it is one row without an element.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lading.model.batch import Split
from lading.model.json_text import Digits, render_json
from lading.model.rows import ERROR, RAW, SplitEnd
from lading.pipeline.tasks import ReadSplits
from lading.pipeline.vector.arrays import texts

MAX_ROWS = 8 * 1024
MAX_BYTES = 8 * 1024 * 1024
"""Of one batch of elements, more or less: what stands beside the array is repeated for each."""
MOST_ARRAY_BYTES = 1024 * 1024
"""Of the arrays that are taken apart at one time; one of them may be longer."""
_ELEMENT = array("q", (16,))
"""About how many bytes stand for an element that is no text."""
_ROW_BYTES = 64
_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploding:
    """Reads as the source does, and takes the array in a column of each row apart. It pickles."""

    read: ReadSplits
    column: str
    keeps_empty: bool = False

    def __call__(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch | SplitEnd]:
        more = without = 0
        for item in self.read(splits):
            if not isinstance(item, pa.RecordBatch):
                yield replace(item, rows=item.rows + more, skipped=item.skipped + without)
                more = without = 0
                continue
            for piece in _pieces(item, self.column):
                taken = _Apart(piece, self.column, keeps_empty=self.keeps_empty)
                more += len(taken.parents) - piece.num_rows
                without += taken.without
                yield from taken.batches()


def _pieces(batch: pa.RecordBatch, column: str) -> Iterator[pa.RecordBatch]:
    """A batch in pieces whose arrays are not too large to be in memory element by element."""
    arrays = batch.column(column)
    is_text = pa.types.is_string(arrays.type)
    sizes = (
        pc.binary_length(arrays) if is_text else pc.multiply(pc.list_value_length(arrays), _whole_numbers(_ELEMENT)[0])
    )
    start = size = 0
    for end, length in enumerate(sizes.to_pylist()):
        if end > start and size + (length or 0) > MOST_ARRAY_BYTES:
            yield batch.slice(start, end - start)
            start, size = end, 0
        size += length or 0
    if start < batch.num_rows:
        yield batch.slice(start)


class _Apart:
    """The rows of a batch, taken apart."""

    def __init__(self, batch: pa.RecordBatch, column: str, *, keeps_empty: bool) -> None:
        self._place = batch.schema.get_field_index(column)
        values, is_bad = batch.column(self._place), pc.is_valid(batch.column(ERROR)).to_pylist()
        lists, reasons = _read_lists(values, is_bad)
        self._batch = _with_reasons(batch, values, reasons) if reasons else batch
        self.parents = array("q")
        """For each row that comes of it, the row that it is from."""
        self.without = 0
        """Rows of which none comes."""
        places = list[int]()
        for number, (first, count) in enumerate(lists.spans):
            # A row that could not be read, or has no array, stays one row: a bad one.
            if is_bad[number] or number in reasons or (not count and keeps_empty):
                self.parents.append(number)
                places.append(-1)
            elif count:
                self.parents.extend([number] * count)
                places.extend(range(first, first + count))
            self.without += not (count or keeps_empty or is_bad[number] or number in reasons)
        self._elements = lists.take(places)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Those rows, in batches that are not too large."""
        sizes = _sizes(self._batch, self._place)
        start = size = 0
        for end, parent in enumerate(self.parents):
            if end > start and (end - start >= MAX_ROWS or size + sizes[parent] > MAX_BYTES):
                yield self._piece(start, end)
                start, size = end, 0
            size += sizes[parent]
        if start < len(self.parents):
            yield self._piece(start, len(self.parents))

    def _piece(self, start: int, end: int) -> pa.RecordBatch:
        parents = _whole_numbers(self.parents[start:end])
        elements = self._elements.slice(start, end - start)
        columns = [
            elements if at == self._place else column.take(parents) for at, column in enumerate(self._batch.columns)
        ]
        return pa.RecordBatch.from_arrays(columns, names=self._batch.schema.names)


@dataclass(frozen=True, slots=True)
class _Texts:
    """Elements that are texts, of all rows one behind the other."""

    spans: Sequence[tuple[int, int]]
    """For each row its first element, and how many it has."""
    elements: Sequence[bytes | None]

    def take(self, places: Sequence[int]) -> pa.Array:
        """Elements by their places; -1 is none."""
        return texts([None if place < 0 else self.elements[place] for place in places], pa.string())


@dataclass(frozen=True, slots=True)
class _Typed:
    """The same of arrays that Arrow has as such."""

    spans: Sequence[tuple[int, int]]
    elements: pa.Array

    def take(self, places: Sequence[int]) -> pa.Array:
        """The same."""
        indices = _whole_numbers(array("q", places))
        is_there = pc.greater_equal(indices, _whole_numbers(array("q", (0,)))[0])
        return self.elements.take(pc.if_else(is_there, indices, pa.nulls(1, pa.int64())[0]))


def _read_lists(values: pa.Array, is_bad: Sequence[bool]) -> tuple[_Texts | _Typed, dict[int, str]]:
    """The arrays of a column, and by row why there is none."""
    if not pa.types.is_string(values.type):
        counts = [count or 0 for count in pc.list_value_length(values).to_pylist()]
        return _Typed(_spans(counts), pc.list_flatten(values)), {}
    elements, counts, reasons = list[bytes | None](), list[int](), dict[int, str]()
    for number, text in enumerate(values.to_pylist()):
        before = len(elements)
        if text is not None and not is_bad[number]:
            try:
                elements += _parsed(text)
            except (ValueError, RecursionError):
                reasons[number] = f"cannot explode '{text[:_SHOWN]}': it is no array"
        counts.append(len(elements) - before)
    return _Texts(_spans(counts), elements), reasons


def _spans(counts: Sequence[int]) -> list[tuple[int, int]]:
    spans, first = list[tuple[int, int]](), 0
    for count in counts:
        spans.append((first, count))
        first += count
    return spans


def _refuse(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_float=Digits, parse_int=Digits, parse_constant=_refuse)


def _parsed(text: str) -> list[bytes | None]:
    """The elements of an array of JSON, each as the text that a column of texts has of such a value."""
    value = _DECODER.decode(text)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(text)
    return [None if each is None else (each if isinstance(each, str) else render_json(each)).encode() for each in value]


def _with_reasons(batch: pa.RecordBatch, values: pa.Array, reasons: dict[int, str]) -> pa.RecordBatch:
    """Rows without an array are bad: the reason, and what stands there."""
    errors = [None if error is None else error.encode() for error in batch.column(ERROR).to_pylist()]
    raws = batch.column(RAW).to_pylist()
    for number, reason in reasons.items():
        errors[number], raws[number] = reason.encode(), values[number].as_py().encode()
    changed = {ERROR: texts(errors, pa.string()), RAW: texts(raws, pa.binary())}
    columns = [changed.get(name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _sizes(batch: pa.RecordBatch, place: int) -> list[int]:
    """About how many bytes stand beside the array in each row."""
    sizes, spread = [_ROW_BYTES] * batch.num_rows, 0
    for at, column in enumerate(batch.columns):
        if at == place:
            continue
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            lengths = pc.binary_length(column).to_pylist()
            sizes = [size + (length or 0) for size, length in zip(sizes, lengths, strict=True)]
        elif pa.types.is_nested(column.type):
            spread += column.nbytes
    return [size + spread // batch.num_rows for size in sizes] if spread else sizes


def _whole_numbers(values: array[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])
