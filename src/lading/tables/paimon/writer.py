"""The executors' side of a Paimon table. Imports no pypaimon: executors do without it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lading.errors import SchemaMismatchError
from lading.model.batch import StagedFile
from lading.storage.store import open_store
from lading.tables.base import WriterSpec
from lading.tables.paimon.partitions import folder_of, render_values
from lading.tables.paimon.stats import render_stats
from lading.tables.parquet import FileNotes, Layout, ParquetWriter

_NUMBER = b"PARQUET:field_id"


class PaimonWriter:
    """Stages Parquet files of one attempt, in the folders in which Paimon looks for them. All columns are in them."""

    def __init__(self, spec: WriterSpec, attempt: str) -> None:
        told = json.loads(spec.extra)
        self._schema_id = int(told["schema"])
        self._columns: Mapping[str, Any] = told["columns"]
        self._file_schema = pa.schema(
            [column.with_metadata({_NUMBER: str(self._columns[column.name][0])}) for column in spec.schema]
        )
        names = tuple(column for column, _ in spec.partition_by)
        kinds = [spec.schema.field(name).type for name in names]
        layout = Layout(
            location=spec.location,
            file_schema=self._file_schema,
            partition_names=names,
            partition_columns=lambda batch: [
                render_values(batch.column(name).cast(kind)) for name, kind in zip(names, kinds, strict=True)
            ],
            folder=lambda key: folder_of(names, kinds, key, default=told["default"], legacy=told["legacy"]),
            stats=self._stats,
            target_bytes=spec.target_bytes,
        )
        filesystem, root = open_store(spec.location, spec.options).arrow()
        self._files = ParquetWriter(layout, filesystem, root, f"data-{attempt}")

    def write(self, batch: pa.RecordBatch) -> None:
        try:
            self._files.write(batch)
        except (ValueError, pa.ArrowTypeError, pa.ArrowNotImplementedError, KeyError) as error:
            msg = f"Rows do not fit the columns of the table: {error}"
            raise SchemaMismatchError(
                msg, left="Nothing was committed.", todo="Change the mapping of the job, or the table."
            ) from error

    def close(self) -> tuple[StagedFile, ...]:
        """Finish all files and say what they hold."""
        return self._files.close()

    def abort(self) -> None:
        """Delete what was written: the attempt failed."""
        self._files.abort()

    def _stats(self, footer: pq.FileMetaData, notes: FileNotes) -> str:
        return render_stats(footer, self._file_schema, notes, schema_id=self._schema_id, columns=self._columns)
