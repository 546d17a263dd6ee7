"""Expiring Lading's own old snapshots, so that a commit costs the same after a year.

PyIceberg reads and writes all snapshots at every commit. What is expired: snapshots whose summary names a Lading job,
beyond the newest `keep_commits` of that job, thinned to one per `thin_to` up to `keep_age`, and all older ones. Never
the current snapshot, a branch, a tag, any job's head, or another writer's snapshot. Data files are never touched:
appends delete none, so every file of an expired snapshot is a file of a later one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, RemoveSnapshotsUpdate, TableRequirement

from lading.tables.care import CarePolicy
from lading.tables.iceberg.faults import is_locked, translated
from lading.tables.iceberg.handle import Handle
from lading.tables.iceberg.head import SUMMARY_JOB, all_anchors, is_astray, summary_of

MAX_EXPIRED = 1000
"""Per round. What is left is taken by the next one."""


def expire_snapshots(handle: Handle, policy: CarePolicy, now: datetime) -> tuple[Table, list[Snapshot]]:
    """One round. Returns the table after it and the snapshots that are certainly gone."""
    table = handle.load()
    doomed = choose_expired(table.metadata, policy, now)
    if not doomed:
        return table, []
    update = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": [snapshot.snapshot_id for snapshot in doomed]})
    with translated(handle.what):
        try:
            # Dies in here: the snapshots are gone or not. Their manifests are deleted only after this, so a kill in
            # between leaves orphans and never a snapshot without its files.
            table._do_commit(updates=(update,), requirements=_unmoved(table.metadata))  # noqa: SLF001
        except (CommitFailedException, ValueError):
            # Somebody committed or expired at the same moment: the next round sees to it.
            return table, []
        except Exception as error:
            if is_locked(error):
                return table, []
            raise
    return table, doomed


def _unmoved(metadata: TableMetadata) -> tuple[TableRequirement, ...]:
    """No branch or tag may have moved since: PyIceberg drops a reference whose snapshot is expired, even `main`."""
    refs = [
        AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": ref.snapshot_id})
        for name, ref in metadata.refs.items()
    ]
    return (AssertTableUUID(uuid=metadata.table_uuid), *refs)


def choose_expired(metadata: TableMetadata, policy: CarePolicy, now: datetime) -> list[Snapshot]:
    """Snapshots to expire, oldest first. None while any job's head is astray: a hole would hide the rollback."""
    anchors = all_anchors(metadata).values()
    if any(is_astray(metadata, anchor) for anchor in anchors):
        return []
    kept = {anchor.snapshot_id for anchor in anchors} | {ref.snapshot_id for ref in metadata.refs.values()}
    if metadata.current_snapshot_id is not None:
        kept.add(metadata.current_snapshot_id)
    by_job: dict[str, list[Snapshot]] = defaultdict(list)
    for snapshot in metadata.snapshots:
        if job := summary_of(snapshot).get(SUMMARY_JOB):
            by_job[job].append(snapshot)
    doomed = [
        snapshot
        for snapshots in by_job.values()
        for snapshot in _beyond_policy(snapshots, policy, now)
        if snapshot.snapshot_id not in kept
    ]
    return sorted(doomed, key=_sequence)[:MAX_EXPIRED]


def _beyond_policy(snapshots: Iterable[Snapshot], policy: CarePolicy, now: datetime) -> list[Snapshot]:
    ordered = sorted(snapshots, key=_sequence)
    older = ordered[: max(0, len(ordered) - policy.keep_commits)]
    oldest_kept_ms = (now - policy.keep_age).timestamp() * 1000
    step_ms = max(1, int(policy.thin_to.total_seconds() * 1000))
    doomed: list[Snapshot] = []
    steps: set[int] = set()
    for snapshot in older:
        step = snapshot.timestamp_ms // step_ms
        if snapshot.timestamp_ms < oldest_kept_ms or step in steps:
            doomed.append(snapshot)
        else:
            steps.add(step)  # The oldest of each step stays, so that a round never undoes the choice of another.
    return doomed


def _sequence(snapshot: Snapshot) -> int:
    return snapshot.sequence_number or 0
