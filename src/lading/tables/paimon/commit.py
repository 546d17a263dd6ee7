"""Step 5 for Paimon: one snapshot file that adds the files and moves the head, put where none is.

pypaimon's own commit is not used: it takes a snapshot of the same commit user and identifier for its own, and it can
answer with success when another writer's file has taken the place of its own.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence

from lading import __version__
from lading.errors import LadingError, StorageError
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.model.outcome import Landed, NotLanded, Outcome, Unknown
from lading.storage.store import ObjectStore
from lading.tables.bills import bill_key
from lading.tables.paimon.heads import TOKEN, Heads, commit_user
from lading.tables.paimon.manifests import Lists, Manifests
from lading.tables.paimon.resume import Anchor, SchemaFolderCopies
from lading.tables.paimon.schema import PaimonSchema, Schemas, check_appendable
from lading.tables.paimon.snapshots import Snapshot, SnapshotLine, parse_snapshot, snapshot_key
from lading.tables.staged_files import check_present

MAX_REBASES = 100
"""How often a commit steps behind unrelated commits that were faster."""
_VERSION = 3
"""Of the form of a snapshot."""


class Committer:
    """Commits to one table."""

    def __init__(
        self, storage: ObjectStore, line: SnapshotLine, heads: Heads, schemas: Schemas, copies: SchemaFolderCopies
    ) -> None:
        self._storage = storage
        self._line = line
        self._heads = heads
        self._schemas = schemas
        self._copies = copies

    def commit(self, expected: Head | None, staged: Sequence[StagedFile], bill: Bill) -> Outcome:
        """Add the files and move the head from exactly `expected` to the bill's, both or neither.

        The snapshot of a number can be put once. Who is second reads what was put there and looks at the head again:
        unrelated commits are stepped behind, a head that moved ends the attempt.
        """
        self._heads.refresh()
        if (settled := self._settled(expected, bill)) is not None:
            return settled
        check_present(self._storage, staged)
        for _ in range(MAX_REBASES):
            self._check_not_behind(bill)
            schema = self._schemas.newest()
            check_appendable(schema, self._storage.uri)
            lists = Manifests(self._storage, schema, self._schemas).write(self._line.newest, staged)
            snapshot = self._new_snapshot(bill, schema, lists)
            try:
                # Dies before the put: the table is as it was. Dies after it: files and head are in the table, both.
                won = self._storage.put_if_absent(snapshot_key(snapshot.id), snapshot.content)
            except StorageError as error:
                return self._failed(error, lists)
            outcome = self._confirmed(snapshot, bill) if won else self._overtaken(expected, bill, lists)
            if outcome is not None:
                return outcome
        return NotLanded(why=f"other writers were faster {MAX_REBASES} times")

    def _settled(self, expected: Head | None, bill: Bill) -> Outcome | None:
        anchor = self._heads.anchor(bill.job_id)
        head = anchor.head if anchor else None
        if head == bill.head:
            return Landed(version=self._line.version)
        if head != expected:
            return NotLanded(why=f"the head is {_named(head)}, not {_named(expected)}")
        return None

    def _check_not_behind(self, bill: Bill) -> None:
        anchor = self._heads.anchor(bill.job_id)
        if anchor is None:
            return
        if bill.accepts_rollback:
            self._heads.check_accepted(bill, anchor)
        else:
            self._heads.check(bill.job_id, anchor)

    def _new_snapshot(self, bill: Bill, schema: PaimonSchema, lists: Lists) -> Snapshot:
        newest = self._line.newest
        old = newest.body if newest else {}
        rows = bill.tally.written
        at_ms = max(int(bill.billed_at.timestamp() * 1000), int(old.get("timeMillis", 0)))
        body = {
            "version": _VERSION,
            "id": self._line.version + 1,
            "schemaId": schema.id,
            "baseManifestList": lists.base[0],
            "baseManifestListSize": lists.base[1],
            "deltaManifestList": lists.delta[0],
            "deltaManifestListSize": lists.delta[1],
            "commitUser": commit_user(bill.job_id),
            "commitIdentifier": bill.seq,
            "commitKind": "APPEND",
            "timeMillis": at_ms,
            "totalRecordCount": int(old.get("totalRecordCount") or 0) + rows,
            "deltaRecordCount": rows,
            "uuid": str(uuid.uuid4()),
            "writerVersion": f"lading-{__version__}",
            "properties": {
                TOKEN: str(bill.token),
                "lading.jobName": bill.job_name,
                "lading.kind": bill.kind.value,
                "lading.bill": bill_key(bill.job_id, bill.head),
            },
        }
        # What an append leaves as it is.
        body |= {name: old[name] for name in ("indexManifest", "watermark") if old.get(name) is not None}
        content = json.dumps(body, indent=2).encode()
        return parse_snapshot(content, number=self._line.version + 1, where=self._storage.uri)

    def _failed(self, error: StorageError, lists: Lists) -> Outcome:
        if error.facts.get("unknown"):
            return Unknown(why=error.what)
        self._discard(lists)
        return NotLanded(why=error.what)

    def _overtaken(self, expected: Head | None, bill: Bill, lists: Lists) -> Outcome | None:
        """Somebody's snapshot is there. None: it is unrelated, and the commit may be put behind it."""
        try:
            self._heads.refresh()
            settled = self._settled(expected, bill)
        except LadingError as error:
            # The snapshot may be an earlier attempt of this same commit whose answer was lost.
            return Unknown(why=error.what)
        if not isinstance(settled, Landed):
            self._discard(lists)
        return settled

    def _confirmed(self, snapshot: Snapshot, bill: Bill) -> Outcome:
        """Read back what was put. An engine that overwrites may have been there at the same moment."""
        try:
            if self._storage.get(snapshot_key(snapshot.id)) != snapshot.content:
                return Unknown(why=f"snapshot {snapshot.id} was put, and then replaced by another writer")
            if self._is_beside(snapshot):
                return self._taken_back(snapshot)
        except LadingError as error:
            return Unknown(why=error.what)
        anchor = Anchor(head=bill.head, snapshot_id=snapshot.id)
        self._line.advance(snapshot)
        self._heads.note(bill.job_id, anchor)
        try:
            # Dies before this: the snapshot itself says that it landed, until it expires.
            self._copies.put_landed(bill.job_id, anchor)
            self._line.hint()
        except LadingError:
            pass  # The commit has landed; the next one writes a newer mark.
        return Landed(version=snapshot.id)

    def _is_beside(self, snapshot: Snapshot) -> bool:
        """Whether what it was put on is gone: others committed past it and let it expire, or rolled the table back."""
        base = self._line.newest
        if base is None:
            return SnapshotLine(self._storage).version != snapshot.id
        return self._storage.get(snapshot_key(base.id)) != base.content

    def _taken_back(self, snapshot: Snapshot) -> Outcome:
        """Remove it, unless somebody has built on it already. Dies before: it is there, and the next start finds it."""
        if self._storage.get(snapshot_key(snapshot.id + 1)) is None:
            self._storage.delete([snapshot_key(snapshot.id)])
        return Unknown(why=f"others went past snapshot {snapshot.id}, or rolled the table back, before it was put")

    def _discard(self, lists: Lists) -> None:
        try:
            self._storage.delete(lists.written)
        except StorageError:
            return  # Orphans, which nobody names.


def _named(head: Head | None) -> str:
    return f"seq {head.seq}" if head else "none"
