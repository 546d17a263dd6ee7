"""Tags of Paimon tables: `tag/tag-<name>`, a copy of the snapshot after which a partition is complete."""

from __future__ import annotations

from lading.ids import JobId
from lading.storage.store import ObjectStore
from lading.tables.base import TAG_PREFIX, DoneTag
from lading.tables.paimon.heads import anchor_in, commit_user
from lading.tables.paimon.snapshots import Snapshot, SnapshotLine, parse_tagged

FOLDER = "tag/"
OWN = f"{FOLDER}tag-{TAG_PREFIX}"


def tag_snapshot(storage: ObjectStore, line: SnapshotLine, done: DoneTag) -> None:
    """Put the tag, and remove older ones of the job. Dies in between: the same again does the rest."""
    snapshot = _snapshot_of(line, done)
    key = f"{FOLDER}tag-{done.name}"
    if snapshot is None:
        return  # A table that was emptied since has nothing to be tagged.
    if not storage.put_if_absent(key, snapshot.content):
        known = storage.get(key)
        if known != snapshot.content and not _is_newer(known, done, where=f"{storage.uri}/{key}"):
            storage.delete([key])
            storage.put_if_absent(key, snapshot.content)
    oldest = done.at - done.keep
    tagged = own_tags(storage)
    storage.delete(
        [
            name
            for name, old in tagged.items()
            if old.user == commit_user(done.job_id) and old.at < oldest and name != key
        ]
    )


def own_tags(storage: ObjectStore) -> dict[str, Snapshot]:
    """The tags that Lading made, by their keys: each holds the manifests of its snapshot."""
    found = {key: storage.get(key) for key in storage.keys(OWN)}
    return {key: parse_tagged(content, where=f"{storage.uri}/{key}") for key, content in found.items() if content}


def _snapshot_of(line: SnapshotLine, done: DoneTag) -> Snapshot | None:
    """That of the commit; the newest when it has expired. Later ones did not write to the partition."""
    line.refresh()
    for snapshot in line.back(line.version, down_to=1):
        if (seq := _seq(snapshot, done.job_id)) is None:
            continue
        if seq <= done.seq:
            return snapshot if seq == done.seq else line.newest
    return line.newest


def _is_newer(known: bytes | None, done: DoneTag, *, where: str) -> bool:
    """Whether a tag is of a later commit of the job: a process that was stopped for long does not move it back."""
    seq = _seq(parse_tagged(known, where=where), done.job_id) if known else None
    return seq is not None and seq > done.seq


def _seq(snapshot: Snapshot, job_id: JobId) -> int | None:
    anchor = anchor_in(snapshot, job_id)
    return None if anchor is None else anchor.head.seq
