"""Which commit of which job each snapshot of an Iceberg table is."""

from __future__ import annotations

from datetime import UTC, datetime

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from lading.ids import JobId
from lading.tables.base import TableVersion
from lading.tables.iceberg.heads import commit_of


def versions_of(metadata: TableMetadata, limit: int) -> list[TableVersion]:
    """From the current snapshot to its ancestors, as far as they are kept. A branch that was left is none of them."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    found: list[TableVersion] = []
    at = metadata.current_snapshot_id
    while at is not None and len(found) < limit and (snapshot := by_id.pop(at, None)) is not None:
        found.append(_version(snapshot))
        at = snapshot.parent_snapshot_id
    return found


def _version(snapshot: Snapshot) -> TableVersion:
    made = commit_of(snapshot)
    return TableVersion(
        name=str(snapshot.snapshot_id),
        at=datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC),
        what=snapshot.summary.operation.value if snapshot.summary else "",
        job_id=JobId(made[0]) if made else None,
        head=made[1] if made else None,
    )
