"""What runs in Spark's Python workers: one function that reads a split, one that writes it.

Imports are light, and nothing happens at import: every worker pays for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lading.errors import StageError
from lading.model.batch import Report, Split, StagedFile
from lading.model.codec import encode
from lading.model.tally import RowCounts
from lading.pipeline.mapping import END, ERROR, FILE, RAW, ROW, SELECTED


class SplitEnd(Protocol):
    """The last word of a reader."""

    @property
    def end(self) -> str: ...
    @property
    def finished(self) -> bool: ...
    @property
    def rows(self) -> int: ...
    @property
    def source_files(self) -> int: ...
    @property
    def source_bytes(self) -> int: ...
    @property
    def received_bytes(self) -> int: ...
    @property
    def marks(self) -> Mapping[str, str]: ...
    @property
    def skipped(self) -> int: ...
    @property
    def lag_ms(self) -> int | None: ...


ReadSplits = Callable[[Sequence[Split]], Iterator[Any]]
"""For each split in turn: Arrow batches with hidden columns, then exactly one SplitEnd."""


class Writer(Protocol):
    """A table's writer."""

    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> tuple[StagedFile, ...]: ...
    def abort(self) -> None: ...


class Quarantine(Protocol):
    """Where bad rows go."""

    def add(self, *, file: str, row: int, reason: str, raw: bytes) -> None: ...
    def close(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTools:
    """What a task is given. Pickled by Spark; the functions are of modules, not closures."""

    read: ReadSplits
    open_writer: Callable[[str], Writer]
    open_quarantine: Callable[[str], Quarantine]
    batch_id: str
    splits: tuple[Split, ...]
    columns: tuple[str, ...] = field(default=())
    """Columns of the table, in order."""


def read_task(tools: TaskTools, schema: pa.Schema, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the splits whose numbers come in. The last row of each carries its end."""
    splits = [tools.splits[number] for batch in numbers for number in batch.column(0).to_pylist()]
    ended = 0
    for item in tools.read(splits):
        if isinstance(item, pa.RecordBatch):
            yield _with_end(item, schema)
        else:
            yield _marker(splits[ended].number, item, schema)
            ended += 1
    if ended < len(splits):
        split = splits[ended]
        msg = f"Split {split.number} of {split.partition} ended without saying where"
        raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")


def _with_end(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [batch.column(name) for name in schema.names if name != END]
    return pa.RecordBatch.from_arrays([*arrays, pa.nulls(batch.num_rows, pa.string())], schema=schema)


def _marker(number: int, end: SplitEnd, schema: pa.Schema) -> pa.RecordBatch:
    told = {
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
    }
    arrays = [pa.nulls(1, field.type) for field in schema if field.name != END]
    return pa.RecordBatch.from_arrays([*arrays, pa.array([json.dumps(told)])], schema=schema)


def write_task(tools: TaskTools, attempt: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write rows by fate and report at each split's end. A split's rows all come before its end."""
    writing = _Writing(tools, attempt)
    try:
        for batch in batches:
            yield from writing.take(batch)
        writing.check_all_ended()
    except BaseException:
        # Spark runs the task again under another attempt; the files of this one can never be committed.
        writing.abort()
        raise


class _Writing:
    def __init__(self, tools: TaskTools, attempt: str) -> None:
        self._tools = tools
        self._attempt = attempt
        self._begun = 0
        self._reset()

    def _reset(self) -> None:
        self._writer: Writer | None = None
        self._quarantine: Quarantine | None = None
        self._first_error = ""
        self._seen = self._loaded = self._unselected = self._bad = 0

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        ends = batch.column(END)
        if ends.null_count == batch.num_rows:
            self._rows(batch)
            return
        start = 0
        for at, told in enumerate(ends.to_pylist()):
            if told is not None:
                self._rows(batch.slice(start, at - start))
                yield self._finish(json.loads(told))
                start = at + 1
        self._rows(batch.slice(start))

    def check_all_ended(self) -> None:
        if self._seen:
            msg = "Rows came without the end of their split"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()

    def _rows(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._seen += batch.num_rows
        errors = batch.column(ERROR)
        if errors.null_count < batch.num_rows:
            self._bad_rows(batch.filter(pc.is_valid(errors)))
            batch = batch.filter(pc.is_null(errors))
        selected = batch.column(SELECTED)
        chosen = pc.sum(selected.cast(pa.int64())).as_py() or 0
        self._unselected += batch.num_rows - chosen
        if chosen:
            good = batch if chosen == batch.num_rows else batch.filter(selected)
            self._open_writer().write(good.select(list(self._tools.columns)))
            self._loaded += chosen

    def _bad_rows(self, batch: pa.RecordBatch) -> None:
        if self._quarantine is None:
            self._quarantine = self._tools.open_quarantine(f"{self._attempt}-{self._begun}")
        for file, row, raw, reason in zip(
            *(batch.column(name).to_pylist() for name in (FILE, ROW, RAW, ERROR)), strict=True
        ):
            self._first_error = self._first_error or f"{file}, row {row}: {reason}"
            self._quarantine.add(file=file or "", row=row or 0, reason=reason, raw=raw or b"")
        self._bad += batch.num_rows

    def _open_writer(self) -> Writer:
        if self._writer is None:
            self._writer = self._tools.open_writer(f"{self._attempt}-{self._begun}")
        return self._writer

    def _finish(self, told: Mapping[str, Any]) -> pa.RecordBatch:
        split = self._tools.splits[told["split"]]
        if self._seen != told["rows"]:
            msg = f"Split {split.number} read {told['rows']} rows, and {self._seen} came to the writer"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")
        # Records that can hold no row, such as a tombstone, are counted where they were read and came no further.
        skipped = told["skipped"]
        rows = RowCounts(
            total=self._seen + skipped, loaded=self._loaded, unselected=self._unselected + skipped, error=self._bad
        )
        report = Report(
            split=split.number,
            partition=split.partition,
            start=split.start,
            end=told["end"],
            finished=told["finished"],
            files=self._writer.close() if self._writer else (),
            rows=rows,
            received_bytes=told["received_bytes"],
            source_files=told["source_files"],
            source_bytes=told["source_bytes"],
            marks=told["marks"],
            lag_ms=told["lag_ms"],
            quarantine=(self._quarantine.close(),) if self._quarantine else (),
            first_error=self._first_error,
        )
        self._begun += 1
        self._reset()
        return pa.RecordBatch.from_arrays([pa.array([json.dumps(encode(report))])], names=["report"])
