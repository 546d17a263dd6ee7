"""The executors' side of a Delta table. Imports no delta-rs: Spark's Python workers load it often."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lading.errors import SchemaMismatchError
from lading.model.batch import StagedFile
from lading.storage.store import open_store
from lading.tables.base import WriterSpec
from lading.tables.delta.actions import Metadata
from lading.tables.delta.columns import DeltaColumn, columns_of, file_field
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
        self._physical: Mapping[str, str] = told["physical"]
        names = tuple(column for column, _ in spec.partition_by)
        self._file_schema = pa.schema(
            [
                file_field(field, self._physical[field.name], told["ids"].get(field.name))
                for field in spec.schema
                if field.name not in names
            ]
        )
        self._partition_types = [spec.schema.field(name).type for name in names]
        self._names = names
        layout = Layout(
            location=spec.location,
            file_schema=self._file_schema,
            partition_names=names,
            partition_columns=self._partition_values,
            # Files of a column that was renamed stay where they are: its name in the path would no longer be true.
            folder=lambda key: folder_of([self._physical[name] for name in names], key),
            stats=self._stats,
            target_bytes=spec.target_bytes,
        )
        filesystem, root = open_store(spec.location, spec.options).arrow()
        self._files = ParquetWriter(layout, filesystem, root, attempt)

    def write(self, batch: pa.RecordBatch) -> None:
        try:
            self._files.write(batch.rename_columns([self._physical.get(name, name) for name in batch.schema.names]))
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
        return [render_values(batch.column(self._physical[name]).cast(kind)) for name, kind in columns]

    def _stats(self, footer: pq.FileMetaData, notes: FileNotes) -> str:
        stats = render_stats(footer, self._file_schema, notes, columns=self._indexed)
        with_nulls = [name for name, count in notes.nulls.items() if count]
        names = {inside: name for name, inside in self._physical.items() if inside != name and inside in self._columns}
        return render_staged(StagedFacts(columns=self._columns, stats=stats, with_nulls=with_nulls, names=names))


def writer_extra(metadata: Metadata, clustered_by: Collection[str] = ()) -> str:
    """What a writer must know beyond the Arrow schema: Delta's own type names, what files call the columns, and which
    of them get statistics: those that the table asks for, and those that the commit or a clustering needs."""
    written = [column for column in columns_of(metadata) if column.is_written]
    inside = [column for column in written if column.name not in metadata.partition_columns]
    required = [column.physical for column in written if not column.nullable]
    return json.dumps(
        {
            "columns": {column.physical: column.type for column in inside},
            "indexed": sorted({*_indexed(metadata, inside), *required, *clustered_by}),
            "physical": {column.name: column.physical for column in written},
            "ids": {column.name: column.field_id for column in written if column.field_id is not None},
        }
    )


def column_defaults(metadata: Metadata) -> dict[str, str]:
    """Columns with a default, as Spark wrote it. The files of an appender have it, the table does not add it."""
    return {column.name: column.default for column in columns_of(metadata) if column.default is not None}


def _indexed(metadata: Metadata, columns: Sequence[DeltaColumn]) -> list[str]:
    settings = metadata.configuration
    if chosen := settings.get("delta.dataSkippingStatsColumns"):
        wanted = {name.strip().strip("`") for name in chosen.split(",")}
        return [column.physical for column in columns if column.name in wanted]
    limit = int(settings.get("delta.dataSkippingNumIndexedCols", _INDEXED))
    names = [column.physical for column in columns]
    return names if limit < 0 else names[:limit]
