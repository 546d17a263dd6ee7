"""Reading a Delta table back: the file list from delta-rs, the rows with pyarrow.

`DeltaTable.to_pyarrow_table` is not used: it can make the interpreter abort at exit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

from lading.errors import TableError
from lading.model.s3_access import S3Access
from lading.storage.store import ObjectStore
from lading.tables.base import Snapshot
from lading.tables.delta.columns import mapping_mode, physical_names
from lading.tables.delta.library import load_table, metadata_of, protocol_of, translated

_PARTITION = "partition."
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def list_files(storage: ObjectStore, options: S3Access) -> list[str]:
    """Paths of the data files, relative to the table."""
    return [unquote(action["path"]) for action in _add_actions(storage, load_table(storage, options))]


def scan_rows(storage: ObjectStore, options: S3Access) -> pa.Table:
    """All rows of the newest version, with the columns of the table in its order."""
    table = load_table(storage, options)
    schema = pa.schema(table.schema().to_arrow())
    names = physical_names(metadata_of(table))
    actions = _add_actions(storage, table)
    _refuse_deletion_vectors(storage, table)
    filesystem, root = storage.arrow()
    parts = []
    for action in actions:
        path = f"{root}/{unquote(action['path'])}"
        with filesystem.open_input_file(path) as file:
            parts.append(_with_all_columns(pq.ParquetFile(file).read(), schema, names, action))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def snapshot_of(table: deltalake.DeltaTable, storage: ObjectStore) -> Snapshot:
    """The files of the loaded version, and the values of their partitions as the log has them."""
    _refuse_deletion_vectors(storage, table)
    _refuse_column_mapping(storage, table)
    schema = pa.schema(table.schema().to_arrow())
    actions = _add_actions(storage, table)
    files = tuple(unquote(action["path"]) for action in actions)
    fields = [schema.field(name) for name in table.metadata().partition_columns]
    size = sum(action["size_bytes"] for action in actions)
    if not fields:
        return Snapshot(files=files, schema=schema, size_bytes=size)
    values = {
        field.name: pa.array([action.get(_PARTITION + field.name) for action in actions], field.type)
        for field in fields
    }
    constants = pa.table(values, schema=pa.schema(fields)) if files else pa.schema(fields).empty_table()
    is_plain = _are_plain(files, constants)
    return Snapshot(files=files, schema=schema, constants=constants, is_plain=is_plain, size_bytes=size)


def _are_plain(files: Sequence[str], constants: pa.Table) -> bool:
    """Whether folders say exactly what the log says. Long values are not shown, and some engines write none at all."""
    names = constants.column_names
    rows = zip(*(constants.column(name).to_pylist() for name in names), strict=True)
    for path, values in zip(files, rows, strict=True):
        said = dict(part.partition("=")[::2] for part in path.split("/")[:-1])
        # Spark turns `%C3%A4` back into two characters.
        if not unquote(path).isascii() or list(said) != names:
            return False
        for name, value in zip(names, values, strict=True):
            if _value(said[name], constants.schema.field(name).type) != value:
                return False
    return True


def _value(folder: str, kind: pa.DataType) -> object:
    if folder == _NO_VALUE:
        return None
    try:
        return pa.scalar(unquote(folder)).cast(kind).as_py()
    except pa.ArrowInvalid:
        return folder, kind  # Equal to no value.


def count_hidden(storage: ObjectStore, options: S3Access) -> int:
    """Rows of the newest version that deletion vectors take out."""
    table = load_table(storage, options)
    with translated(storage):
        if "deletionVectors" not in protocol_of(table).features:
            return 0
        kept = pa.table(table.deletion_vectors()).column("selection_vector")
    return sum(row.as_py().count(False) for row in kept)


def _refuse_deletion_vectors(storage: ObjectStore, table: deltalake.DeltaTable) -> None:
    with translated(storage):
        if "deletionVectors" in protocol_of(table).features and pa.table(table.deletion_vectors()).num_rows:
            msg = f"The Delta table {storage.uri} has deletion vectors, which Lading does not apply when it reads"
            todo = "Read it with another engine, or rewrite its files (REORG TABLE … APPLY (PURGE))."
            raise TableError(msg, left="Nothing was changed.", todo=todo)


def _refuse_column_mapping(storage: ObjectStore, table: deltalake.DeltaTable) -> None:
    """Files of such a table may be older than the mapping, and have no numbers of columns to go by."""
    if mapping_mode(metadata_of(table)) != "none":
        msg = f"The Delta table {storage.uri} has column mapping, which Lading does not follow when it reads"
        raise TableError(msg, left="Nothing was changed.", todo="Read it with another engine. Jobs load into it.")


def _add_actions(storage: ObjectStore, table: deltalake.DeltaTable) -> list[dict[str, Any]]:
    with translated(storage):
        found: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return found


def _with_all_columns(
    rows: pa.Table, schema: pa.Schema, names: Mapping[str, str], action: Mapping[str, Any]
) -> pa.Table:
    columns = []
    for field in schema:
        if names[field.name] in rows.column_names:
            columns.append(rows.column(names[field.name]).cast(field.type))
        else:
            value = pa.scalar(action.get(_PARTITION + field.name), field.type)
            columns.append(pa.chunked_array([pa.repeat(value, rows.num_rows)], field.type))
    return pa.table(columns, schema=schema)
