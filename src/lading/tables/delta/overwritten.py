"""Commits that another writer replaced in the log, and putting them back.

Spark's log store for S3 looks whether the entry of a version is there and then puts its own, without a condition. An
entry that Lading put in between is gone: its rows, and its head when it was the newest one of the job. Files of the
commit are still there, and so is its bill. What is lost is told from a table that was rolled back: the log goes on
above the version that the commit was put on, nobody says RESTORE, and what stands there instead was written at about
the same time.

1. the head is the one that the lost commit replaced: the same bill is committed again, as if for the first time.
2. later commits of the job are there: the files are added by an entry of their own, with the application transaction
   `lading/<job id>/again/<token>`, so that nobody does it twice. The head stays.

Between the commit and its loss others may have read it: a compaction, DELETE or MERGE that took one of its files out
stands in the log, with what became of the rows. Such a file is not added again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from lading import __version__
from lading.clock import SystemClock
from lading.errors import HeadLostError, RecordError, TableError
from lading.ids import JobId, Token
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head
from lading.storage.store import ObjectStore
from lading.tables.bills import StoredBills, bill_key
from lading.tables.delta.actions import LOG, entry_key, token_app
from lading.tables.delta.entry import Ground, commit_times, render_adds, render_lines
from lading.tables.delta.live import changes_of
from lading.tables.delta.log import LogTail, digest

WATCHED_S = 60.0
"""For so long after a commit it is looked at again. Spark puts its entry seconds after it has looked."""
MOST_WATCHED = 20
_LOOK_BACK = 100
_SAME_TIME = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """An entry that this process put."""

    version: int
    content: bytes
    """Its digest."""
    put_s: float
    etag: str = ""
    """Under which it was last seen to be the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCommit:
    """A commit whose entry is gone."""

    bill: Bill
    files: tuple[StagedFile, ...] = ()
    """Those of the bill that no other entry tells of."""


class Watch:
    """The entries of the last moments."""

    def __init__(self, storage: ObjectStore) -> None:
        self._storage = storage
        self._clock = SystemClock()
        self._entries: dict[int, Watched] = {}
        self.is_new = True
        """Nobody has looked yet: what the last process committed may have been replaced after it had ended."""
        self._was_broken = False
        """Seen, and not repaired yet."""

    def put(self, version: int, content: bytes) -> None:
        now_s = self._clock.monotonic_s()
        self._entries[version] = Watched(version=version, content=digest(content), put_s=now_s)
        while len(self._entries) > MOST_WATCHED:
            self._entries.pop(min(self._entries))

    def is_open(self) -> bool:
        """Whether a commit is young enough to be replaced."""
        now_s = self._clock.monotonic_s()
        self._entries = {at: entry for at, entry in self._entries.items() if now_s - entry.put_s < WATCHED_S}
        return bool(self._entries) or self._was_broken

    def repaired(self) -> None:
        """All that was lost is back, or cannot come back."""
        self.is_new = self._was_broken = False

    def is_broken(self) -> bool:
        """Whether one of them is no longer what was put there."""
        if self._was_broken or not self.is_open():
            return self._was_broken
        etags = self._etags()
        for version, entry in list(self._entries.items()):
            etag = etags.get(version, "")
            if etag and etag == entry.etag:
                continue
            content = self._storage.get(entry_key(version))
            if content is None or digest(content) != entry.content:
                self._entries.pop(version)
                self._was_broken = True
                return True
            self._entries[version] = Watched(version=version, content=entry.content, put_s=entry.put_s, etag=etag)
        return False

    def _etags(self) -> dict[int, str]:
        """One request for all of them. On a disk to read a file is cheaper than to list its folder."""
        if not self._storage.uri.startswith("s3://"):
            return {}
        before, newest = entry_key(min(self._entries) - 1), max(self._entries)
        found = {}
        for info in self._storage.list(f"{LOG}/0", start_after=before if min(self._entries) else ""):
            name = info.key.removeprefix(f"{LOG}/").removesuffix(".json")
            if name.isdigit():
                found[int(name)] = info.etag
                if int(name) >= newest:
                    break
        return found


def again_app(job_id: JobId, token: Token | str) -> str:
    """The application id that says that a lost commit was put back."""
    return f"lading/{job_id}/again/{token}"


def find_lost(tail: LogTail, storage: ObjectStore, bills: StoredBills, job_id: JobId, seen: Head) -> list[LostCommit]:
    """The commits up to `seen` that were replaced in the log, oldest first. Empty also when nobody can tell."""
    line = {bill.token: bill for bill in _line(bills, job_id, seen, tail.version)}
    oldest = min((_base(bill) for bill in line.values()), default=tail.version)
    limit, reached = min(tail.version - oldest, _LOOK_BACK), tail.version + 1
    for version, entry in tail.entries_back(tail.version, limit=limit):
        if entry.restore is not None:
            return []
        for app, value in entry.txns.items():
            if app == token_app(job_id):
                line.pop(Token(value), None)
            elif app.startswith(again_app(job_id, "")):
                line.pop(Token(int(app.rpartition("/")[2])), None)
        reached = version
        if not line:
            return []
    # What the log does not go back to, nobody can tell.
    lost = sorted((bill for bill in line.values() if _base(bill) >= reached - 1), key=lambda bill: bill.seq)
    if not lost or not _is_same_time(storage, lost[-1], tail.version):
        return []
    known = _known_paths(storage, min(_base(bill) for bill in lost) + 1, tail.version)
    return [LostCommit(bill=bill, files=tuple(file for file in bill.files if file.path not in known)) for bill in lost]


def _known_paths(storage: ObjectStore, first: int, last: int) -> set[str]:
    """Every file that the entries between two versions tell of. Raises TableError when one is gone meanwhile."""
    found = set[str]()
    for version in range(first, last + 1):
        content = storage.get(entry_key(version))
        if content is None:
            msg = f"Entry {version} of the log of {storage.uri} was removed while it was read"
            raise TableError(msg, left="Nothing was changed.", todo="Nothing: the next batch looks again.")
        added, removed = changes_of(content)
        found |= added.keys() | removed
    return found


def _base(bill: Bill) -> int:
    return -1 if bill.table_version is None else bill.table_version


def _line(bills: StoredBills, job_id: JobId, seen: Head, version: int) -> Iterator[Bill]:
    """The commits that `seen` goes back to, newest first, as far as each was young when the next one was made.

    One that the log does not reach any more was taken away with the log: the table was put back.
    """
    at: Head | None = seen
    newest = None
    for _ in range(MOST_WATCHED):
        try:
            bill = bills.read(job_id, at) if at is not None else None
        except (HeadLostError, RecordError):  # Gone or broken: what was before it, nobody can tell.
            return
        if bill is None or bill.is_without_history or bill.table_version is None or bill.table_version >= version:
            return
        newest = newest or bill.billed_at
        if newest - bill.billed_at > timedelta(seconds=2 * WATCHED_S):
            return
        yield bill
        at = bill.replaces if not bill.accepts_rollback else None


def _is_same_time(storage: ObjectStore, bill: Bill, version: int) -> bool:
    """Whether what stands in the place of a commit was written when the commit was. Later: a copy was put back."""
    first = (bill.table_version or 0) + 1
    wanted = {entry_key(at) for at in range(first, min(first + _LOOK_BACK, version) + 1)}
    start = entry_key(first - 1) if first else ""
    for info in storage.list(f"{LOG}/0", start_after=start):
        if info.key in wanted and abs(info.modified - bill.billed_at) < _SAME_TIME:
            return True
    return False


def render_again(lost: LostCommit, ground: Ground) -> bytes:
    """The entry that adds the files of a lost commit, and moves no head."""
    bill = lost.bill
    at_ms = int(SystemClock().now().timestamp() * 1000)
    told = {
        **commit_times(ground, at_ms),
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "engineInfo": f"lading/{__version__}",
        "isBlindAppend": True,
        "lading.again": bill_key(bill.job_id, bill.head),
    }
    txn = {"appId": again_app(bill.job_id, bill.token), "version": bill.seq, "lastUpdated": at_ms}
    return render_lines([{"commitInfo": told}, {"txn": txn}, *render_adds(bill, lost.files, ground, at_ms)])


def told_of_repair(back: Sequence[str], gone: Sequence[str]) -> str:
    """What happened to commits whose entries were replaced, for people. Below later commits no head tells of a loss."""
    told = [f"Another writer had replaced the log entry of {', '.join(back)}: committed again"] if back else []
    if gone:
        told.append(
            f"Another writer had replaced the log entry of {'; '.join(gone)}. It cannot be committed again: the rows "
            "are lost. Load them once more with a job of their own"
        )
    return ". ".join(told)
