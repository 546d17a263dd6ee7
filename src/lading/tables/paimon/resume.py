"""What a restart needs, kept beside the schema files: `schema/_lading/<job id>/<seq>-<token>.json`.

Paimon keeps every schema file for ever, and its clean-up of orphans passes over the folder. (It deletes what it does
not know in `snapshot`, `manifest`, `index` and in the folders of buckets.) A copy is put before the commit that names
it, so there is never a head without its copy. `<seq>-<token>.landed` is put after the commit, with the number of its
snapshot: snapshots expire, and this stays. Unlike a tag it keeps no data file from being cleaned up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from lading.errors import RecordError
from lading.ids import JobId, Token
from lading.model.bill import Bill, Head, resume_copy
from lading.model.codec import parse_bill, render_bill
from lading.storage.store import ObjectStore

FOLDER = "schema/_lading"
_COPY, _LANDED, _ENDED = ".json", ".landed", "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A head and the snapshot that was committed with it."""

    head: Head
    snapshot_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the folder has of one job."""

    landed: Anchor | None
    """The newest commit that was written down as landed."""
    prepared_on: int
    """No commit that was prepared after `landed` can be in a snapshot up to this one."""
    prepared: int
    """The highest seq that was ever prepared, landed or not; -1 when none was."""


class SchemaFolderCopies:
    """Implements ResumeCopies."""

    def __init__(self, storage: ObjectStore) -> None:
        self._storage = storage

    def put(self, bill: Bill) -> None:
        # The name holds the token of this one commit: a file that is there already is of the same commit.
        self._storage.put_if_absent(_key(bill.job_id, bill.head, _COPY), render_bill(resume_copy(bill)))

    def read(self, job_id: JobId, head: Head) -> Bill | None:
        key = _key(job_id, head, _COPY)
        content = self._storage.get(key)
        return None if content is None else parse_bill(content, where=f"{self._storage.uri}/{key}")

    def put_landed(self, job_id: JobId, anchor: Anchor) -> None:
        """Write down that a commit has landed."""
        content = json.dumps({"snapshot": anchor.snapshot_id}).encode()
        self._storage.put_if_absent(_key(job_id, anchor.head, _LANDED), content)

    def kept(self, job_id: JobId) -> Kept:
        """What is known of a job without any snapshot."""
        names = list(self._names(job_id))
        copies = [_head(name, _COPY) for name in names if name.endswith(_COPY)]
        landed = max((_head(name, _LANDED) for name in names if name.endswith(_LANDED)), default=None)
        later = [self.read(job_id, head) for head in copies if landed is None or head.seq > landed.seq]
        return Kept(
            landed=None if landed is None else self._read_landed(job_id, landed),
            prepared=max((head.seq for head in copies), default=-1),
            prepared_on=min((bill.table_version or 0 for bill in later if bill is not None), default=0),
        )

    def prune(self, job_id: JobId, head: Head) -> int:
        """Delete what is older than the head. A commit that replaces the head needs no older one."""
        old = [name for name in self._names(job_id) if name != _ENDED and _seq(name) < head.seq]
        self._storage.delete([f"{FOLDER}/{job_id}/{name}" for name in old])
        return len(old)

    def end(self, job_id: JobId) -> None:
        """Say that a job was dropped. Dies before: its head holds up the care of the table until it is said again."""
        self._storage.put_if_absent(f"{FOLDER}/{job_id}/{_ENDED}", b"")

    def ended(self) -> set[JobId]:
        """The jobs that were dropped."""
        names = (key.removeprefix(f"{FOLDER}/").partition("/") for key in self._storage.keys(f"{FOLDER}/"))
        return {JobId(name) for name, _, file in names if file == _ENDED}

    def job_ids(self) -> set[JobId]:
        """The jobs that have a copy here."""
        names = (key.removeprefix(f"{FOLDER}/").partition("/") for key in self._storage.keys(f"{FOLDER}/"))
        return {JobId(name) for name, slash, _ in names if slash}

    def _names(self, job_id: JobId) -> list[str]:
        prefix = f"{FOLDER}/{job_id}/"
        return [key.removeprefix(prefix) for key in self._storage.keys(prefix)]

    def _read_landed(self, job_id: JobId, head: Head) -> Anchor | None:
        key = _key(job_id, head, _LANDED)
        content = self._storage.get(key)
        if content is None:
            return None  # Pruned in this moment, because a newer one is there: the snapshots tell.
        try:
            return Anchor(head=head, snapshot_id=int(json.loads(content)["snapshot"]))
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{self._storage.uri}/{key} cannot be read: {error}"
            raise RecordError(msg, left="Nothing was changed.", todo="Restore it from a copy.") from error


def _key(job_id: JobId, head: Head, suffix: str) -> str:
    return f"{FOLDER}/{job_id}/{head.bill_name.removesuffix(_COPY)}{suffix}"


def _head(name: str, suffix: str) -> Head:
    seq, _, token = name.removesuffix(suffix).partition("-")
    return Head(seq=int(seq), token=Token(int(token)))


def _seq(name: str) -> int:
    return int(name.partition("-")[0])
