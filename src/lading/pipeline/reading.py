"""The reading half of a task: batches of a source on their way to Spark, small ones put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from lading.errors import StageError
from lading.model.rows import SplitEnd
from lading.pipeline.mapping import NOTE, WATERMARK
from lading.pipeline.notes import bad_notes, binaries, end_note, place_note
from lading.pipeline.tasks import MAX_BYTES, TaskTools

LONG_ROWS = "Rows are too long for batches of so many"
"""How the stager knows this failure among others."""
_LARGE_ROWS, _LARGE_BYTES = 8 * 1024, 1024 * 1024
"""A batch from here on goes to Spark as it is; smaller ones are put together, because each costs a round."""
_NEAR_BYTES = 8 * 1024 * 1024
"""The same where rows do not leave the task: each batch costs a call for each part of the mapping, and rows of hundreds
of columns are few in a MiB."""


def read_task(tools: TaskTools, schema: pa.Schema, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the splits whose numbers come in: rows, and notes about them. The last note of each split is its end."""
    splits = [tools.splits[number] for batch in numbers for number in batch.column(0).to_pylist()]
    constants = {**tools.of_batch, WATERMARK: pa.scalar(tools.watermark_us, pa.int64())}
    joining = _Joining(schema, most=tools.max_records, constants=constants)
    ended = 0
    for item in tools.read(splits):
        if isinstance(item, pa.RecordBatch):
            yield from joining.rows(item)
        else:
            joining.note(end_note(_told(splits[ended].number, item)))
            ended += 1
    yield from joining.flush()
    if ended < len(splits):
        split = splits[ended]
        msg = f"Split {split.number} of {split.partition} ended without saying where"
        raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")


class _Joining:
    """Puts small batches together, with their notes between them."""

    def __init__(self, schema: pa.Schema, *, most: int, constants: Mapping[str, pa.Scalar]) -> None:
        self._schema = schema
        self._constants = constants
        """Columns that have the same value in all rows."""
        self._most = most
        self._large_bytes = _LARGE_BYTES if most > 1 else _NEAR_BYTES
        self._waiting: list[pa.RecordBatch] = []
        self._count = self._size = 0
        self._nothing = [pa.nulls(1, field.type) for field in schema if field.name != NOTE]

    def rows(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if not batch.num_rows:
            return
        self.note(place_note(batch))
        columns = [
            _repeated(self._constants[field.name], batch.num_rows)
            if field.name in self._constants
            else batch.column(field.name)
            for field in self._schema
            if field.name != NOTE
        ]
        noted = pa.RecordBatch.from_arrays([*columns, bad_notes(batch)], schema=self._schema)
        if noted.num_rows >= _LARGE_ROWS or noted.nbytes >= self._large_bytes:
            yield from self.flush()
            yield self._checked(noted)
            return
        self._add(noted)
        if self._count >= _LARGE_ROWS or self._size >= self._large_bytes:
            yield from self.flush()

    def note(self, note: bytes) -> None:
        self._add(pa.RecordBatch.from_arrays([*self._nothing, binaries([note])], schema=self._schema))

    def flush(self) -> Iterator[pa.RecordBatch]:
        if self._waiting:
            yield self._checked(pa.concat_batches(self._waiting))
        self._waiting, self._count, self._size = [], 0, 0

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Spark counts the rows of its batches and not their bytes: so many long ones would not fit into memory."""
        room = batch.num_rows * (MAX_BYTES // self._most)
        if self._most > 1 and batch.nbytes > max(_LARGE_BYTES // 2, room):
            msg = f"{LONG_ROWS}: {batch.num_rows} rows take {batch.nbytes} bytes"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is staged again with smaller ones.")
        return batch

    def _add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._count += batch.num_rows
        self._size += batch.nbytes


def _repeated(value: pa.Scalar, count: int) -> pa.Array:
    return pa.repeat(value, count) if value.is_valid else pa.nulls(count, value.type)


def _told(number: int, end: SplitEnd) -> dict[str, Any]:
    return {
        "split": number,
        "end": end.end,
        "finished": end.finished,
        "rows": end.rows,
        "received_bytes": end.received_bytes,
        "source_files": end.source_files,
        "source_bytes": end.source_bytes,
        "marks": dict(end.marks),
        "skipped": end.skipped,
        "lag_ms": end.lag_ms,
        "fields": dict(end.fields),
    }
