"""The data files of an Iceberg table now, with what compaction must know of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.manifest import DataFile, FileFormat, ManifestContent
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from lading.tables.compaction.model import OWN_NAME, LiveFile, LiveFiles
from lading.tables.iceberg.ended import astray_jobs
from lading.tables.iceberg.handle import Handle
from lading.tables.iceberg.place import relative_path
from lading.tables.iceberg.stats import collect_stats
from lading.tables.iceberg.writer import METRICS
from lading.tables.maintenance import told_astray
from lading.tables.parquet import FileNotes

FORMAT_VERSION = 2
"""Rows of version 3 have ids, which a copy would have to keep."""
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def live_files(handle: Handle, table: Table, location: str) -> LiveFiles:
    """Every file of the current snapshot. The place of a file: its data sequence number, then as manifests list it."""
    metadata, snapshot = table.metadata, table.metadata.current_snapshot()
    if snapshot is None:
        return LiveFiles()
    written = {each.snapshot_id: each.timestamp_ms for each in metadata.snapshots}
    deleted = files_with_deletes(table)
    found: list[LiveFile] = []
    for manifest in snapshot.manifests(table.io):
        if manifest.content != ManifestContent.DATA:
            continue
        for place, entry in enumerate(manifest.fetch_manifest_entry(table.io, discard_deleted=True)):
            file, at_ms = entry.data_file, written.get(entry.snapshot_id or 0)
            path = relative_path(location, file.file_path)
            spec_id = manifest.partition_spec_id
            partition = _partition_text(metadata, file, spec_id)
            found.append(
                LiveFile(
                    path=path,
                    partition=partition,
                    line=f"{spec_id} {partition}",
                    order=(entry.sequence_number or 0, place),
                    rows=file.record_count,
                    size_bytes=file.file_size_in_bytes,
                    # A snapshot that has expired is older than all that are left.
                    written_at=_LONG_AGO if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC),
                    is_ours=_is_ours(file, path) and spec_id == metadata.default_spec_id,
                    has_deletes=deleted is None or file.file_path in deleted,
                )
            )
    return LiveFiles(files=tuple(found), why_not=_why_not(handle, table, has_unread=deleted is None))


def files_with_deletes(table: Table) -> set[str] | None:
    """Paths of data files that delete files are about; None when PyIceberg cannot tell, as for equality deletes."""
    snapshot = table.metadata.current_snapshot()
    manifests = snapshot.manifests(table.io) if snapshot else []
    if not any(manifest.content == ManifestContent.DELETES for manifest in manifests):
        return set()
    try:
        return {task.file.file_path for task in table.scan().plan_files() if task.delete_files}
    except (ValueError, NotImplementedError):
        return None


def rewrite_stats(
    metadata: TableMetadata, location: str, schema: pa.Schema
) -> Callable[[pq.FileMetaData, FileNotes], str]:
    """Statistics by the field ids that are in the files, whatever the columns are called now."""
    settings = {key: value for key, value in metadata.properties.items() if key.startswith(METRICS)}
    columns = pyarrow_to_schema(schema).model_copy(update={"schema_id": metadata.current_schema_id})
    return collect_stats(columns, metadata.default_spec_id, settings, location)


def _is_ours(file: DataFile, path: str) -> bool:
    is_inside = "://" not in path and not path.startswith("/")
    is_named = OWN_NAME.fullmatch(path.rpartition("/")[2]) is not None
    return is_inside and is_named and file.file_format == FileFormat.PARQUET


def _partition_text(metadata: TableMetadata, file: DataFile, spec_id: int) -> str:
    spec = metadata.specs()[spec_id]
    if not spec.fields:
        return ""
    if spec_id != metadata.default_spec_id:
        return f"partitioning {spec_id}: {file.partition}"
    return str(spec.partition_to_path(file.partition, metadata.schema()))


def _why_not(handle: Handle, table: Table, *, has_unread: bool) -> str:
    if astray := astray_jobs(handle, table):
        return told_astray(astray)
    if table.metadata.format_version != FORMAT_VERSION:
        return f"rows of format version {table.metadata.format_version} have ids of their own; use rewrite_data_files"
    if has_unread:
        return "the table has delete files of a kind that PyIceberg does not read; use rewrite_data_files"
    return ""
