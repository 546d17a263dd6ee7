"""Reading a Delta table back: the file list from delta-rs, the rows with pyarrow.

`DeltaTable.to_pyarrow_table` is not used: it can make the interpreter abort at exit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

from lading.errors import TableVersionError
from lading.tables.delta.library import load_table, translated
from lading.tables.storage import Storage, StorageOptions

_PARTITION = "partition."


def list_files(storage: Storage, options: StorageOptions) -> list[str]:
    """Paths of the data files, relative to the table."""
    return [unquote(action["path"]) for action in _add_actions(storage, load_table(storage, options))]


def scan_rows(storage: Storage, options: StorageOptions) -> pa.Table:
    """All rows of the newest version, with the columns of the table in its order."""
    table = load_table(storage, options)
    schema = pa.schema(table.schema().to_arrow())
    actions = _add_actions(storage, table)
    with translated(storage):
        if pa.table(table.deletion_vectors()).num_rows:
            msg = f"The Delta table {storage.uri} has deletion vectors, which this scan cannot apply"
            raise TableVersionError(
                msg, left="Nothing was changed.", todo="Read it with Spark, or rewrite the files with REORG."
            )
    filesystem, root = storage.arrow()
    parts = []
    for action in actions:
        path = f"{root}/{unquote(action['path'])}"
        with filesystem.open_input_file(path) as file:
            parts.append(_with_all_columns(pq.ParquetFile(file).read(), schema, action))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _add_actions(storage: Storage, table: deltalake.DeltaTable) -> list[dict[str, Any]]:
    with translated(storage):
        found: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return found


def _with_all_columns(rows: pa.Table, schema: pa.Schema, action: Mapping[str, Any]) -> pa.Table:
    columns = []
    for field in schema:
        if field.name in rows.column_names:
            columns.append(rows.column(field.name).cast(field.type))
        else:
            value = pa.scalar(action.get(_PARTITION + field.name), field.type)
            columns.append(pa.chunked_array([pa.repeat(value, rows.num_rows)], field.type))
    return pa.table(columns, schema=schema)
