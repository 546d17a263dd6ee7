"""Reading a Paimon table back: the files from its manifests, the rows with pyarrow."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lading.errors import TableError
from lading.model.s3_access import S3Access
from lading.storage.store import ObjectStore, require_allowed
from lading.tables.base import Snapshot
from lading.tables.paimon.manifests import DataFile
from lading.tables.paimon.schema import PaimonSchema, Schemas
from lading.tables.paimon.snapshots import Snapshot as PaimonSnapshot


def check_readable(snapshot: PaimonSnapshot | None, files: Sequence[DataFile], where: str, options: S3Access) -> None:
    """Refuse what Lading's reader would read wrong, or may not read. Raises TableError, StorageError."""
    if snapshot is not None and snapshot.body.get("indexManifest"):
        raise _unreadable(where, "deleted rows (deletion vectors) or indexes, which Lading does not apply")
    for file in files:
        if file.entry.file.external_path:
            raise _unreadable(where, f"a file outside the table: {file.path}")
        if not file.path.endswith(".parquet"):
            raise _unreadable(where, f"a file that is not Parquet: {file.path}")
        require_allowed(f"{where}/{file.path}", options.within, has_own_keys=bool(options.access_key))


def scan_rows(storage: ObjectStore, files: Sequence[DataFile], schema: PaimonSchema, schemas: Schemas) -> pa.Table:
    """All rows, with the columns of the table in its order. Columns go by their numbers: names may have changed."""
    filesystem, root = storage.arrow()
    parts = []
    for file in files:
        old = schemas.get_schema(file.schema_id)
        names = {number: name for name, (number, _) in old.columns.items()}
        with filesystem.open_input_file(f"{root}/{file.path}") as opened:
            rows = pq.ParquetFile(opened).read()
        columns = []
        for column in schema.arrow:
            name = names.get(schema.columns[column.name][0], "")
            found = rows.column(name).cast(column.type) if name in rows.column_names else None
            columns.append(pa.nulls(rows.num_rows, column.type) if found is None else found)
        parts.append(pa.table(columns, schema=schema.arrow))
    return pa.concat_tables(parts) if parts else schema.arrow.empty_table()


def snapshot_of(storage: ObjectStore, files: Sequence[DataFile], schema: PaimonSchema, schemas: Schemas) -> Snapshot:
    """The files as they are read by the names of their columns. Raises TableError when that would be wrong."""
    for number in {file.schema_id for file in files}:
        for name, known in schemas.get_schema(number).columns.items():
            now = schema.columns.get(name)
            if now is not None and now != known:
                raise _unreadable(storage.uri, f"files in which column {name} was another one, or had another type")
        renamed = {now[0] for now in schema.columns.values()} & {
            known[0] for name, known in schemas.get_schema(number).columns.items() if name not in schema.columns
        }
        if renamed:
            raise _unreadable(storage.uri, "files in which a column had another name")
    size = sum(file.entry.file.file_size for file in files)
    return Snapshot(files=tuple(file.path for file in files), schema=schema.arrow, size_bytes=size)


def _unreadable(where: str, what: str) -> TableError:
    msg = f"The Paimon table at {where} has {what}"
    todo = "Read it with another engine, or compact it there."
    return TableError(msg, left="Nothing was changed.", todo=todo)
