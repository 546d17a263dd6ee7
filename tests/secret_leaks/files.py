"""Looks for secrets in all files below a folder, also inside tables, manifests, stores and packed files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tests.secret_leaks.watch import Watch

Unpack = Callable[[bytes], Iterator[bytes]]


def look_at_files(folder: Path, watch: Watch, *, is_meant: Callable[[Path], bool] = lambda path: False) -> int:
    """Show every file to the watch, as it is and unpacked. Says how many there were."""
    count = 0
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or is_meant(path):
            continue
        count += 1
        try:
            raw = path.read_bytes()
        except OSError:
            continue  # Some tests take the right to read away from a file.
        if not watch.look(path.name, str(path)) and not watch.look(raw, str(path)):
            look_inside(raw, path, watch)
    return count


def look_inside(raw: bytes, path: Path, watch: Watch) -> None:
    """Show what a packed file holds. One that cannot be unpacked was shown as it is: some are broken on purpose."""
    for head, unpack in _PACKED:
        if raw.startswith(head):
            try:
                for part in unpack(raw):
                    watch.look(part, f"{path} (unpacked)")
            except _BROKEN:
                return


def _parquet(raw: bytes) -> Iterator[bytes]:
    file = pq.ParquetFile(io.BytesIO(raw))
    yield str(file.schema_arrow.metadata).encode()
    for batch in file.iter_batches():
        for column in batch.columns:
            yield from _texts(column)


def _texts(column: pa.Array) -> Iterator[bytes]:
    """Buffers of a column; a value never spans two of them."""
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary
    for buffer in column.buffers():
        if buffer is not None:
            yield bytes(buffer)


def _avro(raw: bytes) -> Iterator[bytes]:
    reader = fastavro.reader(io.BytesIO(raw))
    yield str(reader.metadata).encode()
    for record in reader:
        yield repr(record).encode()


def _sqlite(raw: bytes) -> Iterator[bytes]:
    """Values that are longer than a page lie in pieces."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(raw)
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in database.execute(f'SELECT * FROM "{table}"'):
                yield repr(row).encode()


def _zip(raw: bytes) -> Iterator[bytes]:
    with zipfile.ZipFile(io.BytesIO(raw)) as packed:
        for name in packed.namelist():
            yield packed.read(name)


def _zstd(raw: bytes) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.BufferReader(raw), "zstd") as stream:
        yield stream.read()


_BROKEN = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    IndexError,
    StopIteration,
    pa.ArrowException,
    sqlite3.Error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
_PACKED: tuple[tuple[bytes, Unpack], ...] = (
    (b"PAR1", _parquet),
    (b"Obj\x01", _avro),
    (b"SQLite format 3\0", _sqlite),
    (b"PK\x03\x04", _zip),
    (b"\x1f\x8b", lambda raw: iter([gzip.decompress(raw)])),
    (b"BZh", lambda raw: iter([bz2.decompress(raw)])),
    (b"\xfd7zXZ", lambda raw: iter([lzma.decompress(raw)])),
    (b"\x28\xb5\x2f\xfd", _zstd),
)
