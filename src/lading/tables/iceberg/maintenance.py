"""Expiring Lading's own old snapshots, so that a commit costs the same after a year.

PyIceberg reads and writes all snapshots at every commit. What is expired: snapshots whose summary names a Lading job,
beyond the newest `keep_commits` of that job, thinned to one per `thin_to` up to `keep_age`, and all older ones. Never
the current snapshot, a branch, a tag, any job's head, another writer's snapshot, or what the table's settings say to
keep (`retention.py`). Data files are never touched: appends delete none, so every file of an expired snapshot is a
file of a later one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AssertTableUUID, RemoveSnapshotsUpdate, TableRequirement

from lading.tables.compaction.model import MARK
from lading.tables.iceberg.ended import astray_jobs
from lading.tables.iceberg.errors import is_locked, translated
from lading.tables.iceberg.handle import Handle
from lading.tables.iceberg.heads import SUMMARY_JOB, all_anchors, summary_of
from lading.tables.iceberg.retention import kept_by_settings, why_not
from lading.tables.maintenance import CarePolicy

MAX_EXPIRED = 1000
"""Per round. What is left is taken by the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """What one round did."""

    table: Table
    """As it is after the round."""
    gone: Sequence[Snapshot] = ()
    """The snapshots that are certainly gone."""
    remark: str = ""


def expire_snapshots(handle: Handle, policy: CarePolicy, now: datetime) -> Expired:
    """One round."""
    table = handle.load()
    if remark := why_not(table):
        return Expired(table=table, remark=remark)
    # A hole would hide the rollback.
    doomed = [] if astray_jobs(handle, table) else choose_expired(table.metadata, policy, now)
    if not doomed:
        return Expired(table=table)
    update = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": [snapshot.snapshot_id for snapshot in doomed]})
    with translated(handle.what):
        try:
            # Dies in here: the snapshots are gone or not. Their manifests are deleted only after this, so a kill in
            # between leaves orphans and never a snapshot without its files.
            table._do_commit(updates=(update,), requirements=_unmoved(table.metadata))  # noqa: SLF001
        except (CommitFailedException, ValueError):
            # Somebody committed or expired at the same moment: the next round sees to it.
            return Expired(table=table)
        except Exception as error:
            if is_locked(error):
                return Expired(table=table)
            raise
    return Expired(table=table, gone=doomed)


class AssertSameRefs(AssertTableUUID):
    """The table has exactly these branches and tags, where they were: also none that was made since.

    A requirement of Lading's own, which PyIceberg checks on the metadata that it replaces. A catalog with a server
    would not know it.
    """

    refs: dict[str, int]

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]  # as PyIceberg has it
        super().validate(base_metadata)
        if base_metadata is None or self.refs != snapshots_of_refs(base_metadata):
            msg = "Requirement failed: a branch or tag was made or moved meanwhile"
            raise CommitFailedException(msg)


def snapshots_of_refs(metadata: TableMetadata) -> dict[str, int]:
    """Branches and tags, and the snapshots they name."""
    return {name: ref.snapshot_id for name, ref in metadata.refs.items()}


def _unmoved(metadata: TableMetadata) -> tuple[TableRequirement, ...]:
    """PyIceberg drops a reference whose snapshot is expired, even `main`, and says nothing."""
    return (AssertSameRefs(uuid=metadata.table_uuid, refs=snapshots_of_refs(metadata)),)


def choose_expired(metadata: TableMetadata, policy: CarePolicy, now: datetime) -> list[Snapshot]:
    """Snapshots to expire, oldest first."""
    kept = {anchor.snapshot_id for anchor in all_anchors(metadata).values()} | {
        ref.snapshot_id for ref in metadata.refs.values()
    }
    if metadata.current_snapshot_id is not None:
        kept.add(metadata.current_snapshot_id)
    kept |= kept_by_settings(metadata, policy, now)
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
    doomed += [each for each in _old_compactions(metadata, policy, now) if each.snapshot_id not in kept]
    return sorted(doomed, key=_sequence)[:MAX_EXPIRED]


def _old_compactions(metadata: TableMetadata, policy: CarePolicy, now: datetime) -> list[Snapshot]:
    """Not thinned: the snapshot of a compaction names the files that it replaced, and clean-up leaves them so long."""
    oldest_ms = (now - policy.keep_age).timestamp() * 1000
    return [each for each in metadata.snapshots if MARK in summary_of(each) and each.timestamp_ms < oldest_ms]


def oldest_snapshot(snapshots: Iterable[Snapshot], now: datetime) -> datetime:
    """Since when the table keeps its own history: it can be put back to that, and the bill of that time is needed."""
    oldest_ms = min((snapshot.timestamp_ms for snapshot in snapshots), default=None)
    return now if oldest_ms is None else datetime.fromtimestamp(oldest_ms / 1000, UTC)


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
