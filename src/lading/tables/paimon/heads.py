"""The head of a job in a Paimon table, and whether the table was rolled back behind it.

A commit of a job is a snapshot whose commit user is `lading/<job id>` and whose commit identifier is the seq; the token
is among its properties. Snapshots expire, so the newest one that landed is also written down where nothing expires
(`resume.py`), with the number S of its snapshot. The head is the newest of what is written down and of the snapshots
after S. When snapshots after S have expired and a later commit was prepared, nobody can tell whether it landed: then
reading the head fails, and nothing is loaded twice.

A rollback deletes the newest snapshots, and their numbers are given again. So the table was rolled back behind the head
when its newest snapshot is below S, or when S is another commit's by now. When S has expired it was a part of the
table, or nobody can tell: the table was rolled back, others committed past S, and expired S, before the job looked.
"""

from __future__ import annotations

from lading.commit.rollback import ADVICE
from lading.errors import HeadLostError, RecordError, RolledBackError
from lading.ids import JobId, Token
from lading.model.bill import Bill, Head
from lading.tables.paimon.resume import Anchor, SchemaFolderCopies
from lading.tables.paimon.snapshots import Snapshot, SnapshotLine

TOKEN = "lading.token"  # noqa: S105 - a commit's token is no secret


def commit_user(job_id: JobId) -> str:
    """The commit user of a job."""
    return f"lading/{job_id}"


def anchor_in(snapshot: Snapshot, job_id: JobId) -> Anchor | None:
    """The commit of a job that a snapshot is; None when it is somebody else's."""
    if snapshot.user != commit_user(job_id):
        return None
    token = str(snapshot.properties.get(TOKEN, ""))
    if not token.isdigit():
        msg = f"Snapshot {snapshot.id} says that it is of job {job_id}, and it has no token"
        todo = "Somebody commits as a user of Lading: stop it, and roll the table back before its first commit."
        raise RecordError(msg, left="Nothing was changed.", todo=todo, job_id=job_id)
    head = Head(seq=int(snapshot.body["commitIdentifier"]), token=Token(int(token)))
    return Anchor(head=head, snapshot_id=snapshot.id)


class Heads:
    """The heads of all jobs, as far as somebody asked for them."""

    def __init__(self, line: SnapshotLine, copies: SchemaFolderCopies) -> None:
        self._line = line
        self._copies = copies
        self._known: dict[JobId, Anchor | None] = {}
        self._loads = line.loads

    def refresh(self) -> None:
        """Look at the table again."""
        new = self._line.refresh()
        if self._line.loads != self._loads:
            self._known, self._loads = {}, self._line.loads
        for snapshot in new:
            for job_id in self._known:
                self._known[job_id] = anchor_in(snapshot, job_id) or self._known[job_id]

    def anchor(self, job_id: JobId) -> Anchor | None:
        """The head at the last look. Raises HeadLostError."""
        if job_id not in self._known:
            self._known[job_id] = self._find(job_id)
        return self._known[job_id]

    def note(self, job_id: JobId, anchor: Anchor) -> None:
        """This process has moved a head."""
        self._known[job_id] = anchor

    def is_astray(self, job_id: JobId, anchor: Anchor) -> bool:
        """Whether the table was rolled back behind a head."""
        newest = self._line.newest
        if newest is None or newest.id < anchor.snapshot_id:
            return True
        snapshot = newest if newest.id == anchor.snapshot_id else self._line.read(anchor.snapshot_id)
        return snapshot is not None and anchor_in(snapshot, job_id) != anchor

    def check(self, job_id: JobId, anchor: Anchor) -> None:
        """Raises RolledBackError."""
        if self.is_astray(job_id, anchor):
            raise rolled_back(job_id, anchor, f"To restore it, use snapshot {anchor.snapshot_id} or a later one.")

    def check_accepted(self, bill: Bill, anchor: Anchor) -> None:
        """An operator accepted the table as it was at the bill's version: refuse when it was rolled back since."""
        seen = 0 if bill.table_version is None else bill.table_version
        if self._line.version < seen or self.end_of(bill.job_id) != bill.continues:
            raise rolled_back(bill.job_id, anchor, "It was rolled back once more since it was looked at.")

    def end_of(self, job_id: JobId) -> Head | None:
        """The newest commit of a job among the snapshots; None when there is none."""
        lowest = self._line.version + 1
        for snapshot in self._line.back(self._line.version, down_to=1):
            lowest = snapshot.id
            if (anchor := anchor_in(snapshot, job_id)) is not None:
                return anchor.head
        if lowest <= 1:
            return None
        known = self.anchor(job_id)
        if known is not None and known.snapshot_id < lowest:
            return known.head  # Its snapshot has expired, and nothing shows that the table was rolled back.
        msg = f"The snapshots of the table no longer tell which commit of job {job_id} it was rolled back to"
        todo = "Keep the position, and move it with ALTER if need be."
        raise HeadLostError(msg, left="Nothing was changed.", todo=todo)

    def _find(self, job_id: JobId) -> Anchor | None:
        kept = self._copies.kept(job_id)
        if kept.prepared < 0 and kept.landed is None:
            return None
        known, newest = kept.landed, kept.landed.head.seq if kept.landed else -1
        after, prepared_on = known.snapshot_id if known else 0, min(kept.prepared_on, self._line.version)
        # A commit that accepts a rollback has a lower number than the one that the rollback took away.
        is_accepted = kept.prepared > newest and self._line.version <= after
        after = prepared_on if is_accepted else max(after, prepared_on)
        lowest = self._line.version + 1
        for snapshot in self._line.back(self._line.version, down_to=after + 1):
            lowest = snapshot.id
            anchor = anchor_in(snapshot, job_id)
            if anchor is not None and anchor.head.seq > newest:
                return anchor
        if lowest > after + 1 and self._line.version > after and kept.prepared > newest:
            raise _untold(job_id, kept.prepared)
        return known


def rolled_back(job_id: JobId, anchor: Anchor, more: str) -> RolledBackError:
    """The error for a head whose rows are gone."""
    msg = (
        f"The table was rolled back: job {job_id} had committed seq {anchor.head.seq} in snapshot {anchor.snapshot_id}"
    )
    return RolledBackError(
        msg, left="Nothing was read or written.", todo=f"{ADVICE} {more}", job_id=job_id, seq=anchor.head.seq
    )


def _untold(job_id: JobId, seq: int) -> HeadLostError:
    msg = f"The table no longer tells whether seq {seq} of job {job_id} landed: snapshots have expired since then"
    todo = "Compare the table with the source, then make a new job with a start of your choice. See docs/paimon.md."
    return HeadLostError(msg, left="Nothing was read or written.", todo=todo, job_id=job_id, seq=seq)
