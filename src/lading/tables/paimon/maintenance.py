"""Looking after a Paimon table: Lading's own oldest snapshots expire, and the manifests that only they named.

Snapshots expire from the oldest on, as Paimon does it, and no further than the first one of another writer. Data files
are never deleted: Lading's snapshots only add files. Where a tag of somebody else, a branch or a consumer may still
need an old snapshot, nothing is expired; Lading's own tags keep the manifests of their snapshots.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from lading.ids import JobId
from lading.model.bill import Head
from lading.storage.store import ObjectStore
from lading.tables.maintenance import CarePolicy
from lading.tables.paimon.heads import anchor_in, commit_user
from lading.tables.paimon.manifests import Manifests
from lading.tables.paimon.schema import PaimonSchema
from lading.tables.paimon.snapshots import Snapshot, SnapshotLine, snapshot_key
from lading.tables.paimon.tags import own_tags

KEPT_MIN, KEPT_TIME = "snapshot.num-retained.min", "snapshot.time-retained"
OWN = commit_user(JobId(""))
"""How the commit users of all jobs begin."""
_NEAR = 100
_HOLDERS = ("tag/", "branch/", "consumer/")
_DURATION = re.compile(r"(\d+)\s*(ms|s|min|m|h|d)[a-z]*")
_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """What one round did."""

    expired: int = 0
    remark: str = ""


def expire_own(
    storage: ObjectStore,
    line: SnapshotLine,
    manifests: Manifests,
    schema: PaimonSchema,
    policy: CarePolicy,
    now: datetime,
) -> Expiry:
    """Expire Lading's own snapshots that neither the policy nor the table wants kept."""
    tagged = own_tags(storage)
    if holder := next((name for name in _HOLDERS if any(key not in tagged for key in storage.keys(name))), None):
        return Expiry(remark=f"the table has files in {holder}, which may need old snapshots")
    limits = _limits(schema, policy)
    if limits is None:
        return Expiry(remark=f"{KEPT_TIME} or {KEPT_MIN} is not understood")
    keep, age = limits
    gone: list[Snapshot] = []
    for number in range(_earliest(line), line.version - keep + 1):
        snapshot = line.read(number)
        if snapshot is None or not snapshot.user.startswith(OWN) or snapshot.at >= now - age:
            break
        gone.append(snapshot)
    if not gone:
        return Expiry()
    first_kept = line.read(gone[-1].id + 1)
    if first_kept is None:
        return Expiry()
    needed = set(manifests.names(first_kept))
    needed |= {key for snapshot in tagged.values() for key in manifests.names(snapshot)}
    for old in gone:
        unneeded = [key for key in manifests.names(old) if key not in needed]
        # The snapshot first: one without its manifests would be broken. Dies in between: manifests that nobody names.
        storage.delete([snapshot_key(old.id)])
        storage.delete(unneeded)
    line.earliest = first_kept.id
    return Expiry(expired=len(gone))


@dataclass(frozen=True, slots=True, kw_only=True)
class BillsKept:
    """Which bills of a job the table's own history still needs: it may be rolled back to its oldest snapshot."""

    commits: int
    older_than: datetime


def bills_kept(line: SnapshotLine, job_id: JobId, head: Head, policy: CarePolicy, now: datetime) -> BillsKept:
    """By the snapshots of the job itself where the oldest one is near, else by the time of the oldest snapshot."""
    first, young = _earliest(line), now - policy.keep_age
    oldest = line.read(first)
    if oldest is None:
        return BillsKept(commits=policy.keep_commits, older_than=young)
    for number in range(first, min(first + _NEAR, line.version + 1)):
        snapshot = line.read(number) if oldest.user.startswith(OWN) else None
        anchor = anchor_in(snapshot, job_id) if snapshot else None
        if anchor is not None:
            # The bill before it may have been in force at the oldest snapshot.
            needed = head.seq - anchor.head.seq + 1
            return BillsKept(commits=max(policy.keep_commits, needed), older_than=young)
    return BillsKept(commits=policy.keep_commits, older_than=min(young, oldest.at))


def _earliest(line: SnapshotLine) -> int:
    """The oldest snapshot there is; others may have expired some since the last full look."""
    number = line.earliest
    while number < line.version and line.read(number) is None:
        number += 1
    return number


def _limits(schema: PaimonSchema, policy: CarePolicy) -> tuple[int, timedelta] | None:
    """How many snapshots stay at least, and how young they are; None when the table's words are not understood."""
    count, time = schema.options.get(KEPT_MIN, "1"), schema.options.get(KEPT_TIME, "0 s")
    match = _DURATION.fullmatch(time.strip().lower())
    if not (count.isascii() and count.isdigit()) or match is None:
        return None
    unit = next(name for name in (match[2], match[2][0]) if name in _UNITS)
    try:
        kept = int(match[1]) * _UNITS[unit]
    except OverflowError:
        return None  # For longer than time lasts.
    return max(int(count), policy.keep_commits, 1), max(kept, policy.keep_age, policy.grace)
