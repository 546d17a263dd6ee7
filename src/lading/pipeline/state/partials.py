"""Partial aggregates of windows, computed by the tasks that read: what they write is what the batch adds to the state.

A row is a partial aggregate of itself, so that rows of the same window and keys need not be added up here; they are
where it makes fewer of them. Spark merges all of them when the window closes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lading.model.batch import StateFile
from lading.pipeline.mapping import BUCKET
from lading.pipeline.state.aggregates import DIGIT_MASK, DIGITS, InTasks, Part
from lading.pipeline.state.files import TIME, StateWriter, spool_columns
from lading.pipeline.state.rules import START, WindowRule

_CHUNK_BYTES = 64 * 1024 * 1024
"""So much of rows is added up at once."""
_SAMPLE_ROWS = 64 * 1024
_WORTH = 0.5
"""Rows are added up when at most this share of them is left."""
_ROWS = "__rows"
_ANY = pc.ScalarAggregateOptions(skip_nulls=True, min_count=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partials:
    """What is computed."""

    keys: int
    size_us: int
    parts: tuple[InTasks, ...]
    schema: pa.Schema


def partials_of(rule: WindowRule) -> Partials | None:
    """None: the tasks that read cannot compute them, and Spark does in a job of its own."""
    parts = _all_in_tasks(rule.parts)
    if parts is None or rule.is_session or rule.slide_us != rule.size_us:
        return None
    return Partials(keys=rule.keys, size_us=rule.size_us, parts=parts, schema=rule.state_schema)


def _all_in_tasks(parts: Sequence[Part]) -> tuple[InTasks, ...] | None:
    found = tuple(part.in_tasks for part in parts if part.in_tasks is not None)
    return found if len(found) == len(parts) else None


class PartialsWriter:
    """Implements the Writer of tasks. Rows that come are of windows that have not closed: others are late."""

    def __init__(self, files: StateWriter, partials: Partials) -> None:
        self._files = files
        self._partials = partials
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(spool_columns(batch))
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= _CHUNK_BYTES:
            self._add_up()

    def close(self) -> tuple[StateFile, ...]:
        """Finish all files. When this returns they are durable."""
        self._add_up()
        return self._files.close()

    def abort(self) -> None:
        self._files.abort()

    def _add_up(self) -> None:
        if not self._waiting:
            return
        rows = pa.Table.from_batches(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        summed = added_up(each_row(rows, self._partials), self._partials)
        ends = pc.add(summed.column(START), pa.scalar(self._partials.size_us, pa.int64()))
        columns = [ends if name == TIME else summed.column(name) for name in self._partials.schema.names]
        whole = pa.table(columns, names=self._partials.schema.names).cast(self._partials.schema)
        self._files.write(whole.combine_chunks().to_batches()[0], of_rows=summed.column(_ROWS))


def each_row(rows: pa.Table, partials: Partials) -> pa.Table:
    """Rows as partial aggregates of themselves."""
    times = rows.column(TIME).to_numpy()
    columns = {f"k{n}": rows.column(f"c{n}") for n in range(partials.keys)}
    columns[START] = pa.chunked_array([pa.array(times - np.mod(times, partials.size_us), pa.int64())])
    for n, part in enumerate(partials.parts):
        columns[f"p{n}"] = _value(rows, part)
    ones = pa.chunked_array([pa.array(np.ones(rows.num_rows, np.int64()))])
    return pa.table({**columns, BUCKET: rows.column(BUCKET), _ROWS: ones})


def _value(rows: pa.Table, part: InTasks) -> pa.ChunkedArray:
    if part.function == "count":
        if part.column == "*":
            return pa.chunked_array([pa.array(np.ones(rows.num_rows, np.int64()))])
        return pc.is_valid(rows.column(part.column)).cast(pa.int64())
    values = rows.column(part.column)
    if part.function != "sum":
        return values
    if pa.types.is_floating(values.type):
        return values.cast(pa.float64())
    return _digit(values, part.shift) if pa.types.is_integer(values.type) else values


def _digit(values: pa.ChunkedArray, shift: int) -> pa.ChunkedArray:
    digit = pc.shift_right(values.cast(pa.int64()), pa.scalar(shift, pa.int64()))
    return digit if shift == DIGITS[0] else pc.bit_wise_and(digit, pa.scalar(DIGIT_MASK, pa.int64()))


def added_up(rows: pa.Table, partials: Partials) -> pa.Table:
    """Fewer rows, where rows have windows and keys in common; else the rows."""
    keys = [*(f"k{n}" for n in range(partials.keys)), START]
    sample = rows.select(keys).slice(0, _SAMPLE_ROWS)
    if sample.group_by(keys, use_threads=False).aggregate([]).num_rows > _WORTH * sample.num_rows:
        return rows
    merges = ["sum" if part.function in ("count", "sum") else part.function for part in partials.parts]
    wanted = [(f"p{n}", merge, _ANY) for n, merge in enumerate(merges)]
    found = rows.group_by(keys, use_threads=False).aggregate([*wanted, (BUCKET, "min", _ANY), (_ROWS, "sum", _ANY)])
    # Arrow puts the keys first, and then the others in the order in which they were asked for.
    names = [name for name in found.column_names if name in keys]
    rest = [*(f"p{n}" for n in range(len(merges))), BUCKET, _ROWS]
    return found.select(names + [name for name in found.column_names if name not in keys]).rename_columns(names + rest)
