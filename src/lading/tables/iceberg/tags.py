"""Tags of Iceberg tables: a reference to the snapshot after which a partition is complete."""

from __future__ import annotations

from datetime import datetime, timedelta

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from lading.errors import UnavailableError
from lading.tables.base import TAG_PREFIX, DoneTag
from lading.tables.iceberg.errors import is_locked, translated
from lading.tables.iceberg.handle import Handle
from lading.tables.iceberg.heads import SUMMARY_JOB, SUMMARY_SEQ, summary_of

_TRIES = 5


def tag_snapshot(handle: Handle, done: DoneTag) -> None:
    """One commit that only sets and removes references: it makes no snapshot, and no property is touched."""
    for _ in range(_TRIES):
        table = handle.load()
        snapshot_id = _snapshot_of(table.metadata, done)
        known = table.metadata.refs.get(done.name)
        if snapshot_id is None or (known is not None and known.snapshot_id == snapshot_id):
            return  # A table that was emptied since has nothing to be tagged.
        if known is not None and _is_newer(table.metadata, known.snapshot_id, done):
            return
        updates, requirements = _change(table.metadata, done, snapshot_id)
        with translated(handle.what):
            try:
                # Dies in here: the tag is there or not. It is set again, to the same snapshot.
                table._do_commit(updates=updates, requirements=requirements)  # noqa: SLF001 - as for appends
            except CommitFailedException:
                continue  # Somebody committed at the same moment.
            except Exception as error:
                if is_locked(error):
                    continue
                raise
        return
    msg = f"Other writers of {handle.what} were faster {_TRIES} times"
    raise UnavailableError(msg, left="There is no tag.", todo="It is tried again.")


def _snapshot_of(metadata: TableMetadata, done: DoneTag) -> int | None:
    """That of the commit; the current one when it has expired. Later ones did not write to the partition."""
    wanted = {SUMMARY_JOB: done.job_id, SUMMARY_SEQ: str(done.seq)}
    for snapshot in metadata.snapshots:
        if wanted.items() <= summary_of(snapshot).items():
            return snapshot.snapshot_id
    return metadata.current_snapshot_id


def _is_newer(metadata: TableMetadata, snapshot_id: int, done: DoneTag) -> bool:
    """Whether a snapshot is a later commit of the job: a process that was stopped for long does not move a tag back."""
    snapshot = metadata.snapshot_by_id(snapshot_id)
    summary = summary_of(snapshot) if snapshot is not None else {}
    seq = summary.get(SUMMARY_SEQ, "")
    return summary.get(SUMMARY_JOB) == done.job_id and seq.isdigit() and int(seq) > done.seq


def _change(
    metadata: TableMetadata, done: DoneTag, snapshot_id: int
) -> tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
    old = [name for name in metadata.refs if name != done.name and _is_over(metadata, name, done.at)]
    body = {
        "ref-name": done.name,
        "type": SnapshotRefType.TAG,
        "snapshot-id": snapshot_id,
        "max-ref-age-ms": done.keep // timedelta(milliseconds=1),
    }
    updates: tuple[TableUpdate, ...] = (
        SetSnapshotRefUpdate.model_validate(body),
        *(RemoveSnapshotRefUpdate.model_validate({"ref-name": name}) for name in old),
    )
    known = metadata.refs.get(done.name)
    unmoved = {"ref": done.name, "snapshot-id": known.snapshot_id if known is not None else None}
    return updates, (AssertTableUUID(uuid=metadata.table_uuid), AssertRefSnapshotId.model_validate(unmoved))


def _is_over(metadata: TableMetadata, name: str, now: datetime) -> bool:
    """Whether a tag of Lading is older than it says that it is kept, as expiry of every engine would see it."""
    ref = metadata.refs[name]
    if not name.startswith(TAG_PREFIX) or ref.snapshot_ref_type != SnapshotRefType.TAG or ref.max_ref_age_ms is None:
        return False
    snapshot = metadata.snapshot_by_id(ref.snapshot_id)
    return snapshot is not None and now.timestamp() * 1000 - snapshot.timestamp_ms > ref.max_ref_age_ms
