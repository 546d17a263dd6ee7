"""Which snapshots took files out of an Iceberg table, as those that are kept tell."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from lading.tables.base import Removal, Removals
from lading.tables.compaction.model import COMPACTION, MARK
from lading.tables.iceberg.heads import summary_of
from lading.tables.iceberg.place import relative_path


def find_removals(table: Table, location: str, paths: Collection[str]) -> Removals:
    """Look at the snapshots from the current one back that did more than append."""
    hidden = _hidden(table.metadata.current_snapshot())
    if not paths:
        return Removals(is_complete=True, hidden_rows=hidden)
    found: dict[str, Removal] = {}
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    at, is_complete, since = table.metadata.current_snapshot(), True, None
    while at is not None:
        since = at.sequence_number or None  # Version 1 of the format has no such numbers.
        for path in _removed(table, at):
            name = relative_path(location, path)
            if name in paths and name not in found:
                found[name] = _removal(at)
        # PyIceberg's expiry lets the children of what it removes have no parent: only the first commit has none.
        is_first = at.parent_snapshot_id is None and (at.sequence_number or 0) <= 1
        is_complete = is_first or at.parent_snapshot_id in snapshots
        at = snapshots.get(at.parent_snapshot_id) if at.parent_snapshot_id is not None else None
    if not is_complete:
        # Lading itself expires only appends and its own compactions, of which notes tell. What others took out is in
        # their own snapshots, if those are kept.
        for snapshot in snapshots.values():
            for path in _removed(table, snapshot):
                found.setdefault(relative_path(location, path), _removal(snapshot))
    known = {path: found[path] for path in paths if path in found}
    return Removals(found=known, is_complete=is_complete, complete_since=since, hidden_rows=hidden)


def _hidden(snapshot: Snapshot | None) -> int:
    """Rows that delete files take out. An equality delete may stand for any number of rows; it counts as one."""
    told = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary is not None else {}
    totals = (told.get(f"total-{kind}-deletes", "0") for kind in ("position", "equality"))
    return sum(int(total) for total in totals if total.isdigit())


def _removed(table: Table, snapshot: Snapshot) -> Iterator[str]:
    if snapshot.summary is None or snapshot.summary.operation is Operation.APPEND:
        return
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            if entry.status is ManifestEntryStatus.DELETED:
                yield entry.data_file.file_path


def _removal(snapshot: Snapshot) -> Removal:
    operation = snapshot.summary.operation if snapshot.summary is not None else None
    what = operation.value if operation is not None else "a commit"
    if MARK in summary_of(snapshot):
        what = COMPACTION
    return Removal(by=f"{what} in snapshot {snapshot.snapshot_id}", is_rewrite=operation is Operation.REPLACE)
