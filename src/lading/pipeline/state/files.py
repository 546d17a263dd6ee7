"""Files of state: written whole, never changed, and read only when they are what the manifest says.

Rows on their way from the reading stage to the merging one are in such files, too: that is the spool of a batch.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lading.clock import SystemClock
from lading.errors import SourceError
from lading.model.batch import StateFile
from lading.model.state import stamp_of
from lading.pipeline.mapping import BUCKET
from lading.pipeline.state.copies import StateCopies
from lading.storage.store import ObjectStore

TIME, ROW = "__time", "__row"
"""Columns that every such file has, beside the bucket of the keys: the time that says when the row is done with, and
the place of the row among the others of its file or batch."""
TARGET_BYTES = 64 * 1024 * 1024
"""A file is closed when it has so much: it is written and read as a whole."""
_GROUP_ROWS = 256 * 1024
_DAY_US = 86_400_000_000
_SPOOL_SUFFIX = ".arrows"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePlace:
    """Where the state of a job is, for every process that works on it."""

    open: Callable[[], ObjectStore]
    folder: str
    """Relative to the table."""
    copies: StateCopies | None = None
    """On this machine, of files that come from far away. None: none are kept."""


class StateWriter:
    """Writes the files of one attempt. Names carry the attempt and a random part: no other attempt can have them."""

    def __init__(self, place: StatePlace, attempt: str, *, spools: bool = False, keeps: bool = False) -> None:
        """`spools`: rows are on their way to a merge. `keeps`: and the files become state as they are."""
        self._objects = place.open()
        self._prefix = f"{place.folder}/{stamp_of(SystemClock().now())}-{attempt}"
        self._spools = spools
        self._is_brief = spools and not keeps
        self._rows = 0
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._waiting_for: list[pa.ChunkedArray] = []
        self._done: list[StateFile] = []

    def write(self, batch: pa.RecordBatch, *, of_rows: pa.ChunkedArray | None = None) -> None:
        """Take rows in, each of which may be a sum of so many others. In a spool each has its place."""
        if self._spools:
            batch = spool_columns(batch)
            places = pa.array(np.arange(self._rows, self._rows + batch.num_rows, dtype=np.int64))
            batch = batch.append_column(ROW, places)
        self._rows += batch.num_rows
        self._waiting.append(batch)
        self._waiting_for += [] if of_rows is None else [of_rows]
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= TARGET_BYTES:
            self._finish()

    def close(self) -> tuple[StateFile, ...]:
        """Finish all files. When this returns they are durable."""
        self._finish()
        return tuple(self._done)

    def abort(self) -> None:
        """The attempt failed: what it wrote is read by nobody."""
        with suppress(Exception):
            self._objects.delete(file.path for file in self._done)

    def _finish(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        of_rows = np.concatenate([each.to_numpy() for each in self._waiting_for]) if self._waiting_for else None
        self._waiting, self._waiting_bytes, self._waiting_for = [], 0, []
        if self._is_brief:
            self._put(table, 0)
            return
        for places in by_distance(table.column(TIME).to_numpy(), SystemClock().now()):
            rows = table if len(places) == table.num_rows else table.take(places)
            self._put(rows, 0 if of_rows is None else int(of_rows[places].sum()))

    def _put(self, table: pa.Table, of_rows: int) -> None:
        content = _spooled(table) if self._is_brief else _kept(table)
        suffix = _SPOOL_SUFFIX if self._is_brief else ".parquet"
        path = f"{self._prefix}-{len(self._done)}-{secrets.token_hex(4)}{suffix}"
        times = pc.min_max(table.column(TIME)).as_py()
        self._objects.put_if_absent(path, content)
        self._done.append(
            StateFile(
                path=path,
                rows=table.num_rows,
                size_bytes=len(content),
                digest=hashlib.sha256(content).hexdigest(),
                buckets=sum(1 << bucket for bucket in pc.unique(table.column(BUCKET)).to_pylist()),
                min_us=times["min"],
                max_us=times["max"],
                of_rows=of_rows,
            )
        )


def by_distance(times: np.ndarray[Any, Any], now: datetime) -> list[np.ndarray[Any, Any]]:
    """The places of rows whose times are about as far ahead of the clock.

    A file is kept until its latest row is done with. One row of the year 9999 would keep all that are with it: those
    of 1, 2, 4, … days ahead are in files of their own, and none is kept for more than twice as long as it needs.
    """
    now_us = (now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    days = (times - now_us) // _DAY_US
    if days.max() < 1:
        return [np.arange(len(times))]
    classes = np.floor(np.log2(np.maximum(days, 0.5)))
    return [np.flatnonzero(classes == each) for each in np.unique(classes)]


def spool_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Columns of a row on its way to the state are called by their places: c0, c1, …, time, bucket."""
    return batch.rename_columns([*(f"c{n}" for n in range(batch.num_columns - 2)), TIME, BUCKET])


def read_state_file(place: StatePlace, file: StateFile) -> pa.Table:
    """The rows of a file. Raises SourceError when it is not there or not what was written."""
    # What is read once, and soon, is not worth a copy.
    copies = None if file.path.endswith(_SPOOL_SUFFIX) else place.copies
    content = place.open().get(file.path) if copies is None else _copied(place, copies, file)
    if content is None or not _is_whole(content, file):
        what = "is gone" if content is None else "is not what was written: somebody cut or changed it"
        msg = f"The state file {file.path} {what}"
        todo = (
            "Restore it from a copy of the table's _lading folder, or move the job with ALTER: to a commit whose state "
            'is there, or with "state" = "RESET".'
        )
        raise SourceError(msg, left="Nothing was committed; the position is unchanged.", todo=todo)
    if file.path.endswith(_SPOOL_SUFFIX):
        with pa.ipc.open_stream(content) as stream:
            return stream.read_all()
    return pq.read_table(pa.BufferReader(content))


def _kept(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=_GROUP_ROWS, store_schema=True)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _spooled(table: pa.Table) -> bytes:
    """What is read once and soon is written in the quickest way that there is."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _is_whole(content: bytes, file: StateFile) -> bool:
    return len(content) == file.size_bytes and hashlib.sha256(content).hexdigest() == file.digest


def _copied(place: StatePlace, copies: StateCopies, file: StateFile) -> bytes | None:
    """From the copy on this machine, or from the storage, of which a copy is kept."""
    copy = copies.find(file.digest)
    if copy is not None and _is_whole(copy, file):
        return copy
    found = place.open().get(file.path)
    if found is not None and _is_whole(found, file):
        copies.keep(file.digest, found)
    return found
