"""What a restart needs, kept in a Delta table's log folder: `_delta_log/_lading/<job id>/<seq>-<token>.json`.

VACUUM of every engine passes over `_delta_log`, and log cleanup removes only files that are named like log entries and
checkpoints. A copy is put before the commit that names it, so the log never has a head without its copy. Only the
copies of the newest commits are kept, because readers list this folder.
"""

from __future__ import annotations

from lading.ids import JobId
from lading.model.bill import Bill, Head, resume_copy
from lading.model.codec import parse_bill, render_bill
from lading.storage.store import ObjectStore
from lading.tables.delta.actions import LOG

FOLDER = f"{LOG}/_lading"
_ENDED = "ended"


class LogFolderCopies:
    """Implements ResumeCopies in the log folder."""

    def __init__(self, storage: ObjectStore) -> None:
        self._storage = storage

    def put(self, bill: Bill) -> None:
        # The name holds the token of this one commit: a file that is there already is of the same commit.
        self._storage.put_if_absent(_key(bill.job_id, bill.head), render_bill(resume_copy(bill)))

    def read(self, job_id: JobId, head: Head) -> Bill | None:
        key = _key(job_id, head)
        content = self._storage.get(key)
        return None if content is None else parse_bill(content, where=f"{self._storage.uri}/{key}")

    def prune(self, job_id: JobId, head: Head) -> int:
        """Delete copies older than the head's. A commit that replaces the head needs no older one."""
        prefix = f"{FOLDER}/{job_id}/"
        names = (key.removeprefix(prefix) for key in self._storage.keys(prefix))
        old = [f"{prefix}{name}" for name in names if name != _ENDED and _seq(name) < head.seq]
        self._storage.delete(old)
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


def _key(job_id: JobId, head: Head) -> str:
    return f"{FOLDER}/{job_id}/{head.bill_name}"


def _seq(name: str) -> int:
    return int(name.partition("-")[0])
