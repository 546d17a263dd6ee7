"""What the settings of an Iceberg table say about its history. They are for every engine, so also for Lading."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import ancestors_of

from lading.tables.maintenance import CarePolicy

GC_ENABLED = "gc.enabled"
MAX_AGE_MS = "history.expire.max-snapshot-age-ms"
MIN_KEPT = "history.expire.min-snapshots-to-keep"


def keeps_all(properties: Mapping[str, str]) -> str:
    """Why no file of a table may be deleted, whatever becomes of the table; empty when its files are its own."""
    collects = properties.get(GC_ENABLED, "true").strip().lower()
    if collects == "false":
        return f"{GC_ENABLED} is false: files of the table may belong to other tables too"
    if collects != "true":
        return f"{GC_ENABLED} is {properties[GC_ENABLED]!r}, which is not understood"
    return ""


def why_not(table: Table) -> str:
    """Why nothing of this table may be expired; empty when something may."""
    properties = table.metadata.properties
    if why := keeps_all(properties):
        return why
    for name in (MAX_AGE_MS, MIN_KEPT):
        if name in properties and _number(properties, name) is None:
            return f"{name} is {properties[name]!r}, which is not understood"
    if not isinstance(table.catalog, MetastoreCatalog):
        return "the catalog's server cannot be asked to keep tags that are made meanwhile: use its own expiry"
    return ""


def kept_by_settings(metadata: TableMetadata, policy: CarePolicy, now: datetime) -> set[int]:
    """Snapshots that the settings of the table, or of a branch, say to keep: a line without gaps from each branch.

    Incremental readers follow that line, so a hole in it would stop them.
    """
    kept: set[int] = set()
    for ref in metadata.refs.values():
        if ref.snapshot_ref_type == SnapshotRefType.BRANCH:
            kept |= _line(metadata, ref, policy, now)
    return kept


def _line(metadata: TableMetadata, ref: SnapshotRef, policy: CarePolicy, now: datetime) -> set[int]:
    age_ms = ref.max_snapshot_age_ms or _number(metadata.properties, MAX_AGE_MS) or 0
    count = max(ref.min_snapshots_to_keep or _number(metadata.properties, MIN_KEPT) or 1, policy.keep_commits)
    oldest_ms = now.timestamp() * 1000 - max(age_ms, policy.grace // timedelta(milliseconds=1))
    line: set[int] = set()
    for snapshot in ancestors_of(metadata.snapshot_by_id(ref.snapshot_id), metadata):
        if len(line) >= count and snapshot.timestamp_ms < oldest_ms:
            break
        line.add(snapshot.snapshot_id)
    return line


def _number(properties: Mapping[str, str], name: str) -> int | None:
    text = properties.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() else None
