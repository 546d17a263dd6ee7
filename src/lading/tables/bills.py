"""Bills beside a table: `<table>/_lading/<job id>/<seq>-<token>.json`.

No table format knows these files, so other engines may remove them as orphans. Bills are history: what a restart needs
is kept a second time by the format itself, where no engine cleans up (`ResumeCopies`).
"""

from __future__ import annotations

import re
from datetime import datetime
from itertools import islice, takewhile
from typing import Protocol

from lading.errors import HeadLostError, RecordError, UnknownOutcomeError
from lading.ids import JobId, Token
from lading.model.bill import Bill, Head
from lading.model.codec import parse_bill, render_bill
from lading.model.manifests import parse_manifest
from lading.model.state import StateRef, stamp_of
from lading.storage.store import ObjectStore

FOLDER = "_lading"
_BILL_NAME = re.compile(r"\d+-\d+\.json")
_MANY_FILES = 100
"""So many old files of state are worth a look."""
_MOST_PRUNED = 1000
"""Bills, each time."""


class ResumeCopies(Protocol):
    """What a restart needs of a job's newest commit, kept by the table format where no engine cleans up.

    Laws: from the moment a commit has landed until the next one of the job has, `read` finds its copy, whatever other
    engines delete. A copy is never changed.
    """

    def put(self, bill: Bill) -> None:
        """Called before the commit. Does nothing where the copy is a part of the commit itself."""
        ...

    def read(self, job_id: JobId, head: Head) -> Bill | None:
        """The copy that belongs to a head; None when there is none, as for commits of older versions of Lading."""
        ...


class StoredBills:
    """Bills as objects in the table's own storage."""

    def __init__(self, storage: ObjectStore, copies: ResumeCopies) -> None:
        self._storage = storage
        self._copies = copies

    @property
    def storage(self) -> ObjectStore:
        """The table's own storage."""
        return self._storage

    def put(self, bill: Bill) -> None:
        """Write the bill, and before it the copy that a restart can rely on.

        Dies in between: a copy of a commit that never happened, which no head names.
        """
        self._copies.put(bill)
        key, content = bill_key(bill.job_id, bill.head), render_bill(bill)
        if self._storage.put_if_absent(key, content) or self._storage.get(key) == content:
            return
        msg = f"Another bill is already at {self._storage.uri}/{key}"
        raise RecordError(
            msg,
            left="It was not touched.",
            todo="Two jobs share one id: stop both and report this.",
            job_id=bill.job_id,
        )

    def read(self, job_id: JobId, head: Head) -> Bill:
        """The bill that a head names; when other engines have removed its file, what a restart needs of it."""
        key = bill_key(job_id, head)
        content = self._storage.get(key)
        where = f"{self._storage.uri}/{key}"
        if content is None and (copy := self._copies.read(job_id, head)) is not None:
            return copy
        if content is None:
            msg = f"The head of job {job_id} names a bill that is gone: {where}"
            raise HeadLostError(
                msg,
                left="Nothing was read or written.",
                todo="Restore the file from a copy of the table, or make a new job with a start of your choice.",
                job_id=job_id,
                seq=head.seq,
            )
        bill = parse_bill(content, where=where)
        if (bill.job_id, bill.head) != (job_id, head):
            msg = f"The bill {where} is inconsistent: it says it is {bill.head.bill_name} of job {bill.job_id}"
            raise RecordError(msg, left="Nothing was changed.", todo="Restore the file from a copy of the table.")
        return bill

    def heads(self, job_id: JobId) -> list[Head]:
        """All bills there are, landed or not, lowest seq first."""
        prefix = f"{FOLDER}/{job_id}/"
        names = (key.removeprefix(prefix) for key in self._storage.keys(prefix))
        return sorted(_head(name) for name in names if _BILL_NAME.fullmatch(name))

    def has_landed(self, job_id: JobId, head: Head, token: Token) -> bool:
        """Whether the commit with this token is the head or one that the head goes back to.

        A landed bill names the head that it replaced, and compare-and-set made sure that this head was the table's:
        the chain of `replaces` is exactly what landed. The answer False is only given when it is certain.
        """
        wanted = next((bill for bill in self.heads(job_id) if bill.token == token), None)
        at: Head | None = head
        while at is not None and at.token != token:
            if wanted is None:
                raise self._forgotten(job_id, token)
            if at.seq <= wanted.seq:
                return False
            try:
                at = self.read(job_id, at).replaces
            except HeadLostError as error:
                raise self._forgotten(job_id, token) from error
        return at is not None

    def _forgotten(self, job_id: JobId, token: Token) -> UnknownOutcomeError:
        msg = f"The bills of job {job_id} no longer go back to token {token}: whether it landed cannot be told"
        return UnknownOutcomeError(
            msg,
            left="Its files are kept and the table was not changed.",
            todo="Start the job again: it goes on from the head of the table.",
            token=token,
        )

    def prune(self, job_id: JobId, *, head: Head, keep_commits: int, older_than: datetime) -> int:
        """Delete bills that are more than `keep_commits` behind the head and were written before `older_than`.

        The newest of those stays: it is the one that was in force at `older_than`, and the table may be put back to
        there. The head itself and everything at or above its seq is out of reach, whatever the arguments say. A job
        waits for this, so what is left of very many is for the next time.
        """
        limit = head.seq - max(keep_commits, 1)
        bills = (self.read(job_id, old) for old in self.heads(job_id) if old.seq <= limit)
        old = [
            (bill.head, self._bad_rows_of(bill))
            for bill in islice(takewhile(lambda bill: bill.billed_at < older_than, bills), _MOST_PRUNED)
        ]
        doomed = [(one, bad_rows) for one, bad_rows in old if one.seq < old[-1][0].seq]
        for one, bad_rows in doomed:
            # Oldest first: what is left is always a whole run up to the head, also when the process dies in between.
            # Bad rows before the bill: nobody would find them without it. Dies in between: they are said to be gone.
            self._storage.delete(bad_rows)
            self._storage.delete([bill_key(job_id, one)])
        self._prune_state(job_id, head, older_than)
        return len(doomed)

    def _bad_rows_of(self, bill: Bill) -> tuple[str, ...]:
        """Files of bad rows beside the table that a bill names, and no other bill. Others may have written the bill."""
        folder = f"{self._storage.uri}/{quarantine_folder(bill.job_id)}/"
        inside = (path for path in bill.quarantine if path.startswith(folder) and ".." not in path.split("/"))
        return tuple(path.removeprefix(f"{self._storage.uri}/") for path in inside)

    def _prune_state(self, job_id: JobId, newest: Head, older_than: datetime) -> None:
        """Delete what no bill needs of the state, once it is worth a look. Dies in here: some of it is gone."""
        if len(self._old_state(job_id, older_than)) >= _MANY_FILES:
            self._storage.delete(self.unneeded_state(job_id, newest, older_than))

    def unneeded_state(self, job_id: JobId, newest: Head | None, older_than: datetime) -> list[str]:
        """Files that no bill needs of the state, and what attempts left that were not committed. None: the job was
        dropped, and no bill needs any.

        Young files stay: somebody may be about to commit a bill that names them. A manifest that cannot be read keeps
        everything. Reads all bills.
        """
        old, needed = self._old_state(job_id, older_than), set[str]()
        if not old or newest is None:
            return old
        for head in {newest, *self.heads(job_id)}:  # The file of the newest bill may be gone, and its copy is not.
            state = self.read(job_id, head).state
            if state is None or state.manifest in needed:
                continue
            content = self._storage.get(state.manifest)
            if content is None:
                return []
            needed |= {state.manifest, *(file.path for file in parse_manifest(content, where=state.manifest).files)}
        return [key for key in old if key not in needed]

    def missing_state(self, job_id: JobId, state: StateRef) -> str:
        """The first file of a state that is gone; empty when all of them are there. Does not look into them."""
        there = set(self._storage.keys(f"{state_folder(job_id)}/"))
        content = self._storage.get(state.manifest) if state.manifest in there else None
        if content is None:
            return state.manifest
        files = parse_manifest(content, where=state.manifest).files
        return next((file.path for file in files if file.path not in there), "")

    def _old_state(self, job_id: JobId, older_than: datetime) -> list[str]:
        prefix = f"{state_folder(job_id)}/"
        return [key for key in self._storage.keys(prefix) if key.removeprefix(prefix) < stamp_of(older_than)]


def bill_key(job_id: JobId, head: Head) -> str:
    """Where a bill is kept, relative to the table."""
    return f"{FOLDER}/{job_id}/{head.bill_name}"


def job_of_bill(key: str) -> JobId | None:
    """Whose bill a key of the table's storage names; None when it names something else."""
    folder, _, name = key.rpartition("/")
    root, _, job_id = folder.partition("/")
    return JobId(job_id) if root == FOLDER and "/" not in job_id and _BILL_NAME.fullmatch(name) else None


def state_folder(job_id: JobId) -> str:
    """Where a job keeps its state, relative to the table."""
    return f"{FOLDER}/{job_id}/state"


def quarantine_folder(job_id: JobId) -> str:
    """Where bad rows of a job are, relative to the table, when the home is not seen by all who write or read them."""
    return f"{FOLDER}/{job_id}/quarantine"


def _head(name: str) -> Head:
    seq, _, token = name.removesuffix(".json").partition("-")
    return Head(seq=int(seq), token=Token(int(token)))
