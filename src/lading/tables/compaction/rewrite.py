"""Copying rows from small files into large ones: batch by batch, as they stand, without a cast.

The new file has exactly the columns of the old ones, with their types and field ids, so nothing is computed that a
reader would compute otherwise: a column that was added or renamed since is read from the new file as from the old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from lading.errors import StorageError, TableError
from lading.model.batch import StagedFile
from lading.storage.store import ObjectStore
from lading.tables.compaction.choose import Group
from lading.tables.compaction.model import LiveFile
from lading.tables.parquet import FileNotes, Layout, ParquetWriter

_BATCH_ROWS = 32_768

Stats = Callable[[pq.FileMetaData, FileNotes], str]
_TODO = "Nothing needs to be done: the files stay as they are. If it comes again, look at the file."


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Files of one form, and the form."""

    files: Group
    schema: pa.Schema


def rewrites_of(storage: ObjectStore, group: Group) -> list[Rewrite]:
    """Cut a group where the columns of the files change. Files that stand alone then are left out."""
    filesystem, root = storage.arrow()
    found: list[Rewrite] = []
    run: list[LiveFile] = []
    form: pa.Schema | None = None
    for file in group:
        with _opened(filesystem, root, file) as parquet:
            schema = parquet.schema_arrow
        if form is None or not schema.equals(form, check_metadata=True):
            found += [Rewrite(files=tuple(run), schema=form)] if form is not None and len(run) > 1 else []
            run, form = [], schema
        run.append(file)
    return [*found, Rewrite(files=tuple(run), schema=form)] if form is not None and len(run) > 1 else found


def copy_rows(
    storage: ObjectStore, rewrite: Rewrite, stats: Stats, *, compaction_id: str, target_bytes: int
) -> tuple[StagedFile, ...]:
    """Write the rows of the files, in their order. Dies in here: files that nothing names, which clean-up takes.

    Memory is bounded by a row group of one old file and one of the new. Raises TableError when not exactly the rows
    that the table tells of were written, and nothing is left then.
    """
    filesystem, root = storage.arrow()
    folder = rewrite.files[0].path.rpartition("/")[0]
    layout = Layout(
        location=storage.uri,
        file_schema=rewrite.schema,
        partition_names=(),
        partition_columns=lambda batch: [],
        folder=lambda key: folder,
        stats=stats,
        # The sum of the old files may be a little more than the target: that is no reason for a second file.
        target_bytes=2 * target_bytes,
    )
    writer = ParquetWriter(layout, filesystem, root, f"compact-{compaction_id}")
    try:
        for batch in _rows(filesystem, root, rewrite.files):
            writer.write(batch)
        staged = writer.close()
        _check(filesystem, root, rewrite, staged)
    except BaseException:
        writer.abort()
        raise
    return staged


def _rows(filesystem: pafs.FileSystem, root: str, files: Sequence[LiveFile]) -> Iterator[pa.RecordBatch]:
    for file in files:
        rows = 0
        with _opened(filesystem, root, file) as parquet:
            for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
                rows += batch.num_rows
                yield batch
        if rows != file.rows:
            msg = f"{file.path} holds {rows} rows, and the table says {file.rows}"
            raise TableError(msg, left="Nothing was committed.", todo="Run lading verify.")


def _opened(filesystem: pafs.FileSystem, root: str, file: LiveFile) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(f"{root}/{file.path}", filesystem=filesystem)
    except FileNotFoundError as error:
        msg = f"The data file {file.path} is gone"
        raise StorageError(msg, left="Nothing was committed.", todo=_TODO, unknown=False) from error
    except (OSError, pa.ArrowException) as error:
        msg = f"The data file {file.path} cannot be read: {error}"
        raise StorageError(msg, left="Nothing was committed.", todo=_TODO, unknown=False) from error


def _check(filesystem: pafs.FileSystem, root: str, rewrite: Rewrite, staged: Sequence[StagedFile]) -> None:
    """What was written, read back: the number of rows and the columns."""
    wanted, rows = sum(file.rows for file in rewrite.files), 0
    for file in staged:
        with pq.ParquetFile(f"{root}/{file.path}", filesystem=filesystem) as parquet:
            rows += parquet.metadata.num_rows
            if not parquet.schema_arrow.equals(rewrite.schema, check_metadata=True):
                msg = f"{file.path} has other columns than the files that it was to replace"
                raise TableError(msg, left="Nothing was committed.", todo=_TODO)
    if rows != wanted:
        msg = f"{rows} rows were written for {wanted}"
        raise TableError(msg, left="Nothing was committed.", todo=_TODO)
