"""Which commit of which job each snapshot of a Paimon table is."""

from __future__ import annotations

from lading.ids import JobId
from lading.tables.base import TableVersion
from lading.tables.paimon.heads import anchor_in, commit_user
from lading.tables.paimon.snapshots import Snapshot, SnapshotLine

_PREFIX = commit_user(JobId(""))


def versions_of(line: SnapshotLine, limit: int) -> list[TableVersion]:
    """The newest snapshots, as far back as they are kept."""
    return [_version(each) for each in line.back(line.version, down_to=max(1, line.version - limit + 1))]


def _version(snapshot: Snapshot) -> TableVersion:
    job_id = JobId(snapshot.user.removeprefix(_PREFIX)) if snapshot.user.startswith(_PREFIX) else None
    anchor = anchor_in(snapshot, job_id) if job_id is not None else None
    return TableVersion(
        name=str(snapshot.id),
        at=snapshot.at,
        what=snapshot.kind,
        job_id=job_id if anchor else None,
        head=anchor.head if anchor else None,
    )
