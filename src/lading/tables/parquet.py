"""Writing Parquet for any table: one open file per partition value, closed when it is large enough."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from lading.model.batch import StagedFile
from lading.storage.local import sync_file
from lading.tables.types import is_nested

PartitionKey = tuple[str | None, ...]

_FLOATS = ("FLOAT", "DOUBLE")
_GROUP_BYTES = 32 * 1024 * 1024
"""A row group is written when this much waits for it: small ones pack badly and are slow to read."""
_RUNS, _RUN, _UNIQUE = 64, 64, 0.98
"""So many runs of so many rows are looked at, from all over a row group. Where 2 % of their values came before, a
column has some 100,000 of them: as many as a dictionary of 1 MiB may have."""
_WAITING_BYTES = 64 * 1024 * 1024
"""All files together may let so much wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNotes:
    """What was counted while a file was written: its footer does not say it for every column."""

    nulls: Mapping[str, int]
    """Column → nulls, for every column of the file."""
    with_nan: frozenset[str] = frozenset()
    """Columns that hold NaN. Nothing may claim bounds for them: readers sort NaN above every number, or below, or
    nowhere, and a bound of the other values makes some of them pass over the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a format wants its files: where, with which columns and statistics."""

    location: str
    file_schema: pa.Schema
    """Columns in the file (Delta leaves partition columns out)."""
    partition_names: tuple[str, ...]
    partition_columns: Callable[[pa.RecordBatch], list[pa.Array]]
    """One array of strings (null for null) per partition field: the value under which a row is filed."""
    folder: Callable[[PartitionKey], str]
    stats: Callable[[pq.FileMetaData, FileNotes], str]
    target_bytes: int


class ParquetWriter:
    """Stages files of one attempt. Names carry the attempt and a random part: no other attempt can have them."""

    def __init__(self, layout: Layout, filesystem: pafs.FileSystem, root: str, attempt: str) -> None:
        self._layout = layout
        self._fs = filesystem
        self._root = root
        self._attempt = attempt
        self._open: dict[PartitionKey, _OpenFile] = {}
        self._paths: list[str] = []
        self._done: list[StagedFile] = []
        self._waiting_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        for key, rows in self._routed(batch):
            file = self._open.get(key) or self._start(key)
            self._waiting_bytes += file.add(rows)
            if file.waiting_bytes >= min(_GROUP_BYTES, self._layout.target_bytes):
                self._flush(key)
                if self._open[key].sink.tell() >= self._layout.target_bytes:
                    self._finish(key)
        while self._waiting_bytes > _WAITING_BYTES:
            self._flush(max(self._open, key=lambda key: self._open[key].waiting_bytes))

    def close(self) -> tuple[StagedFile, ...]:
        for key in list(self._open):
            self._finish(key)
        return tuple(self._done)

    def abort(self) -> None:
        for file in self._open.values():
            # The writer first: it would write its footer when collected, into a sink that is closed by then.
            with suppress(OSError, pa.ArrowException):
                if file.writer is not None:
                    file.writer.close()
                file.sink.close()
        self._open.clear()
        for path in self._paths:
            if self._fs.get_file_info(f"{self._root}/{path}").is_file:
                self._fs.delete_file(f"{self._root}/{path}")

    def _routed(self, batch: pa.RecordBatch) -> Iterator[tuple[PartitionKey, pa.RecordBatch]]:
        body = _shaped(batch, self._layout.file_schema)
        if not self._layout.partition_names:
            yield (), body
            return
        columns = self._layout.partition_columns(batch)
        combined = _codes(columns[0])
        for column in columns[1:]:
            # Numbered again after each column: two codes of one batch fit into 64 bits, a product of many would wrap
            # around, and rows of different partitions would have the same number.
            codes = _codes(column)
            combined = _codes(pc.add(pc.multiply(combined, pc.add(pc.max(codes), 1)), codes))
        for value in pc.unique(combined):
            chosen = pc.equal(combined, value)
            first = pc.index(chosen, True).as_py()
            yield tuple(column[first].as_py() for column in columns), body.filter(chosen)

    def _start(self, key: PartitionKey) -> _OpenFile:
        name = f"{self._attempt}-{len(self._paths):05d}-{secrets.token_hex(8)}.parquet"
        folder = self._layout.folder(key)
        path = f"{folder}/{name}" if folder else name
        full = f"{self._root}/{path}"
        self._fs.create_dir(full.rpartition("/")[0], recursive=True)
        self._paths.append(path)
        self._open[key] = _OpenFile(path=path, sink=self._fs.open_output_stream(full))
        return self._open[key]

    def _flush(self, key: PartitionKey) -> None:
        """Write what waits as one row group. Into another file, when this one claims bounds that NaN would break."""
        file = self._open[key]
        rows, size = file.take_waiting()
        if rows is None:
            return
        self._waiting_bytes -= size
        with_nan = _columns_with_nan(rows)
        if file.writer is not None and not with_nan <= file.with_nan:
            self._end(key)
            file = self._start(key)
        if file.writer is None:
            file.with_nan = with_nan
            file.writer = pq.ParquetWriter(
                file.sink,
                self._layout.file_schema,
                compression="zstd",
                store_schema=False,
                write_statistics=_bounded(self._layout.file_schema, with_nan),
                use_dictionary=_coded(self._layout.file_schema, rows),
            )
        file.write(rows)

    def _finish(self, key: PartitionKey) -> None:
        self._flush(key)
        self._end(key)

    def _end(self, key: PartitionKey) -> None:
        file = self._open.pop(key)
        if file.writer is None:
            raise AssertionError(key)  # A file is started for rows, and they were written.
        file.writer.close()
        size = file.sink.tell()
        file.sink.close()
        if isinstance(self._fs, pafs.LocalFileSystem):
            self._sync(file.path)
        metadata = file.writer.writer.metadata
        self._done.append(
            StagedFile(
                path=file.path,
                rows=file.rows,
                size_bytes=size,
                partition=dict(zip(self._layout.partition_names, key, strict=True)),
                stats=self._layout.stats(metadata, FileNotes(nulls=file.nulls, with_nan=file.with_nan)),
            )
        )

    def _sync(self, path: str) -> None:
        # A commit must never be more durable than the rows it names: the file, and the folders that name it.
        full = f"{self._root}/{path}"
        while len(full) > len(self._root):
            sync_file(full)
            full = full.rpartition("/")[0]
        sync_file(self._root)


def _shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a file. Nested ones that no job fills are NULL; no other one may be missing."""
    given = set(batch.schema.names)
    left_out = [field_ for field_ in schema if field_.nullable and is_nested(field_.type) and field_.name not in given]
    for field_ in left_out:
        batch = batch.append_column(field_, pa.nulls(batch.num_rows, field_.type))
    return batch.select(schema.names).cast(schema)


def _codes(column: pa.Array) -> pa.Array:
    """A number per row, the same for the same value, below the number of rows."""
    return pc.dictionary_encode(column, null_encoding="encode").indices.cast(pa.int64())


def _columns_with_nan(rows: pa.Table) -> frozenset[str]:
    found = set[str]()
    for field_, column in zip(rows.schema, rows.columns, strict=True):
        if pa.types.is_floating(field_.type) and pc.any(pc.is_nan(column)).as_py():
            found.add(field_.name)
    return frozenset(found)


def _bounded(schema: pa.Schema, with_nan: frozenset[str]) -> bool | list[str]:
    """Which columns get statistics in the footer, as pyarrow wants it: all of them, or the paths of some."""
    if not with_nan and not any(pa.types.is_nested(field_.type) for field_ in schema):
        return True
    columns = _leaves(schema)
    # Numbers inside lists and structs are not looked through: they get none.
    inside = {column.path for column in columns if column.path not in schema.names}
    return [
        column.path
        for column in columns
        if column.path not in with_nan and not (column.path in inside and column.physical_type in _FLOATS)
    ]


def _coded(schema: pa.Schema, rows: pa.Table) -> list[str]:
    """Columns that have dictionaries. Readers on the JVM look for 0.0 in them and pass over a file with -0.0."""
    unique = {name for name, column in zip(rows.schema.names, rows.columns, strict=True) if _is_unique(column)}
    return [
        column.path for column in _leaves(schema) if column.physical_type not in _FLOATS and column.path not in unique
    ]


def _is_unique(column: pa.ChunkedArray) -> bool:
    """Whether hardly a value comes twice: a dictionary would hold them all, until it is too long and given up."""
    if is_nested(column.type) or not len(column):
        return False
    step = max(_RUN, len(column) // _RUNS)
    runs = [column.slice(at, _RUN) for at in range(0, len(column), step)]
    sample = pa.chunked_array([chunk for run in runs for chunk in run.chunks], column.type)
    return len(sample.unique()) > _UNIQUE * len(sample)


def _leaves(schema: pa.Schema) -> list[pq.ColumnSchema]:
    probe = pa.BufferOutputStream()
    pq.write_metadata(schema, probe)
    leaves = pq.read_metadata(pa.BufferReader(probe.getvalue())).schema
    return [leaves.column(at) for at in range(len(leaves.names))]


@dataclass(slots=True, kw_only=True)
class _OpenFile:
    path: str
    sink: pa.NativeFile
    writer: pq.ParquetWriter | None = None
    """Made with the first row group: only then is it known which columns hold NaN."""
    with_nan: frozenset[str] = frozenset()
    rows: int = 0
    nulls: Counter[str] = field(default_factory=Counter)
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_bytes: int = 0

    def add(self, rows: pa.RecordBatch) -> int:
        """Let rows wait for their row group; returns their bytes."""
        self.waiting.append(rows)
        size = int(rows.nbytes)
        self.waiting_bytes += size
        return size

    def take_waiting(self) -> tuple[pa.Table | None, int]:
        """What waits, and its bytes."""
        taken, size = self.waiting, self.waiting_bytes
        self.waiting, self.waiting_bytes = [], 0
        return (pa.Table.from_batches(taken) if taken else None), size

    def write(self, rows: pa.Table) -> None:
        """One row group."""
        if self.writer is None:
            raise AssertionError(self.path)
        self.writer.write_table(rows)
        self.rows += rows.num_rows
        self.nulls.update({name: rows.column(at).null_count for at, name in enumerate(rows.schema.names)})
