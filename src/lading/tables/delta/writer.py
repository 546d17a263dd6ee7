"""The executors' side of a Delta table. Imports no delta-rs: Spark's Python workers load it often."""

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
from lading.tables.delta.actions import Metadata
from lading.tables.delta.partitions import folder_of, render_values
from lading.tables.delta.staged import StagedFacts, render_staged
from lading.tables.delta.stats import render_stats
from lading.tables.parquet import FileNotes, Layout, ParquetWriter

_INDEXED = 32
"""How many columns get statistics when the table does not say."""


class DeltaWriter:
    """Stages Parquet files of one attempt. Partition columns are in the folder name and the log, not in the file."""

    def __init__(self, spec: WriterSpec, attempt: str) -> None:
        told = json.loads(spec.extra)
        self._columns: Mapping[str, Any] = told["columns"]
        self._indexed = frozenset(told["indexed"])
        names = tuple(column for column, _ in spec.partition_by)
        self._file_schema = pa.schema([field for field in spec.schema if field.name not in names])
        self._partition_types = [spec.schema.field(name).type for name in names]
        self._names = names
        layout = Layout(
            location=spec.location,
            file_schema=self._file_schema,
            partition_names=names,
            partition_columns=self._partition_values,
            folder=lambda key: folder_of(names, key),
            stats=self._stats,
            target_bytes=spec.target_bytes,
        )
        filesystem, root = open_store(spec.location, spec.options).arrow()
        self._files = ParquetWriter(layout, filesystem, root, attempt)

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

    def _partition_values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        columns = zip(self._names, self._partition_types, strict=True)
        return [render_values(batch.column(name).cast(kind)) for name, kind in columns]

    def _stats(self, footer: pq.FileMetaData, notes: FileNotes) -> str:
        stats = render_stats(footer, self._file_schema, notes, columns=self._indexed)
        with_nulls = [name for name, count in notes.nulls.items() if count]
        return render_staged(StagedFacts(columns=self._columns, stats=stats, with_nulls=with_nulls))


def writer_extra(metadata: Metadata) -> str:
    """What a writer must know beyond the Arrow schema: Delta's own type names, and which columns get statistics."""
    fields = json.loads(metadata.schema_string)["fields"]
    inside = {field["name"]: field["type"] for field in fields if field["name"] not in metadata.partition_columns}
    required = [field["name"] for field in fields if not field["nullable"]]
    return json.dumps({"columns": inside, "indexed": sorted({*_indexed(metadata, list(inside)), *required})})


def column_defaults(metadata: Metadata) -> dict[str, str]:
    """Columns with a default, as Spark wrote it. The files of an appender have it, the table does not add it."""
    fields = json.loads(metadata.schema_string)["fields"]
    found = {field["name"]: (field.get("metadata") or {}).get("CURRENT_DEFAULT") for field in fields}
    return {name: str(default) for name, default in found.items() if default is not None}


def _indexed(metadata: Metadata, names: list[str]) -> list[str]:
    settings = metadata.configuration
    if chosen := settings.get("delta.dataSkippingStatsColumns"):
        wanted = {name.strip().strip("`") for name in chosen.split(",")}
        return [name for name in names if name in wanted]
    limit = int(settings.get("delta.dataSkippingNumIndexedCols", _INDEXED))
    return names if limit < 0 else names[:limit]
