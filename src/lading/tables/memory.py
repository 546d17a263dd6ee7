"""A table in memory: the smallest thing that keeps every law of the Table protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lading.commit.rollback import ADVICE
from lading.errors import HeadLostError, RecordError, RolledBackError, SchemaMismatchError
from lading.ids import JobId, Token
from lading.model.batch import StagedFile
from lading.model.bill import Bill, Head, check_bill, resume_copy
from lading.model.codec import parse_bill, render_bill
from lading.model.outcome import Landed, NotLanded, Outcome

Rows = Sequence[Any]

ROUND_TRIP_EVERY = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryVersion:
    """One version: files, heads, and whether somebody restored it."""

    files: frozenset[str] = frozenset()
    heads: Mapping[JobId, Head] = field(default_factory=dict)
    copies: Mapping[JobId, Bill] = field(default_factory=dict)
    """What a restart needs of each head, as a part of the commit."""
    token: Token | None = None
    restored: bool = False
    content_of: int = 0
    """For a version that somebody restored: the version whose files it has."""


class MemoryTable:
    """Versions in a list, files in a dict."""

    def __init__(self) -> None:
        self.versions: list[MemoryVersion] = [MemoryVersion()]
        self.strangers: frozenset[str] = frozenset()
        self._stored: dict[str, Rows] = {}

    # The Table protocol.

    def read_head(self, job_id: JobId) -> Head | None:
        if self.is_behind(job_id):
            raise _rolled_back(job_id)
        return self.read_head_unchecked(job_id)

    def read_head_unchecked(self, job_id: JobId) -> Head | None:
        return self.versions[-1].heads.get(job_id)

    def commit(self, expected: Head | None, staged: Sequence[StagedFile], bill: Bill) -> Outcome:
        if not self._matches(expected, self.read_head_unchecked(bill.job_id)):
            return NotLanded(why="the head is not the one expected")
        self._check_not_behind(bill)
        self._check_files(staged)
        self._append(staged, bill)
        return Landed(version=len(self.versions) - 1)

    def find(self, job_id: JobId, token: Token) -> bool:
        heads = (version.heads.get(job_id) for version in self.versions if version.token == token)
        return any(head is not None and head.token == token for head in heads)

    def version(self) -> int | None:
        return len(self.versions) - 1

    def repair(self, job_id: JobId, seen: Head) -> str:
        return ""

    def is_watched(self) -> bool:
        return False

    def discard(self, staged: Sequence[StagedFile]) -> None:
        for file in staged:
            self._stored.pop(file.path, None)

    def ends_with(self, job_id: JobId) -> Head | None:
        """The newest commit of a job whose rows the current version has."""
        at = len(self.versions) - 1
        while at > 0:
            version = self.versions[at]
            head = version.heads.get(job_id)
            if not version.restored and head is not None and head != self.versions[at - 1].heads.get(job_id):
                return head
            at = version.content_of if version.restored else at - 1
        return None

    def resume_copy(self, job_id: JobId, head: Head) -> Bill | None:
        """What a restart needs of the head that stands in the table."""
        copy = self.versions[-1].copies.get(job_id)
        return _as_read(copy) if copy is not None and copy.head == head else None

    # Files.

    def write_file(self, path: str, rows: Rows) -> None:
        """Stage a file. A name is used once."""
        self._stored[path] = tuple(rows)

    def file_rows(self, path: str) -> Rows | None:
        """What a file holds; None when it is gone."""
        return self._stored.get(path)

    def rows(self) -> list[Any]:
        """All rows of the current version."""
        return [row for path in sorted(self.versions[-1].files) for row in self._stored[path]]

    # What others do.

    def append_unrelated(self, path: str, rows: Rows) -> None:
        """Another writer appends a file."""
        now = self.versions[-1]
        self.write_file(path, rows)
        self.strangers |= {path}
        self.versions.append(replace(now, files=now.files | {path}, token=None, restored=False))

    def restore(self, version: int) -> None:
        """Put the files back, as RESTORE and rollback do in Delta and Iceberg: the heads stay."""
        old, now = self.versions[version], self.versions[-1]
        self.versions.append(replace(now, files=old.files, token=None, restored=True, content_of=version))

    def restore_with_heads(self, version: int) -> None:
        """Put everything back, as a copy of an old folder does."""
        old = self.versions[version]
        self.versions.append(replace(old, token=None, restored=True, content_of=version))

    # Inside.

    def _matches(self, expected: Head | None, head: Head | None) -> bool:
        return expected == head

    def _append(self, staged: Sequence[StagedFile], bill: Bill) -> None:
        now = self.versions[-1]
        self.versions.append(
            MemoryVersion(
                files=now.files | {file.path for file in staged},
                heads={**now.heads, bill.job_id: bill.head},
                copies={**now.copies, bill.job_id: resume_copy(bill)},
                token=bill.token,
            )
        )

    def _check_files(self, staged: Sequence[StagedFile]) -> None:
        for file in staged:
            rows = self._stored.get(file.path)
            if rows is None or len(rows) != file.rows or file.path in self.versions[-1].files:
                msg = f"The staged file {file.path} is missing, in the table already, or does not hold {file.rows} rows"
                raise SchemaMismatchError(msg, left="Nothing was written.", todo="Stage the batch again.")

    def _check_not_behind(self, bill: Bill) -> None:
        accepted = bill.accepts_rollback and bill.table_version is not None
        since = self.versions[(bill.table_version or 0) + 1 :] if accepted else ()
        if any(version.restored for version in since) or (not accepted and self.is_behind(bill.job_id)):
            raise _rolled_back(bill.job_id)

    def is_behind(self, job_id: JobId, *, at: int = -1) -> bool:
        """Whether, at a version, the rows had been put back behind the head that stands there."""
        last = len(self.versions) + at if at < 0 else at
        if self.versions[last].heads.get(job_id) is None:
            return False  # Nothing of the job is known here that could have been put back.
        for now in range(last, 0, -1):
            version, older = self.versions[now], self.versions[now - 1]
            if version.heads.get(job_id) != older.heads.get(job_id):
                return False
            if version.restored:
                return True
        return False


def _as_read(bill: Bill) -> Bill:
    """A bill as a later start reads it: one of four from the bytes that a file would hold.

    A fault of the codec is one of every bill of a kind, so a few show it; the codec has tests of its own.
    """
    return parse_bill(render_bill(bill), where=bill.head.bill_name) if bill.token % ROUND_TRIP_EVERY == 0 else bill


def _rolled_back(job_id: JobId) -> RolledBackError:
    msg = f"The table was rolled back to a version before the head of job {job_id}"
    return RolledBackError(
        msg,
        left="Nothing was read or written.",
        todo=ADVICE,
        job_id=job_id,
    )


class MemoryBills:
    """Bills in a dict. Some of those that are read went through the bytes that a file would hold, once."""

    def __init__(self, table: MemoryTable | None = None) -> None:
        self._stored: dict[tuple[JobId, Head], Bill] = {}
        self._ever: dict[tuple[JobId, Head], Bill] = {}
        self._read_before: dict[tuple[JobId, Head], Bill] = {}
        self._table = table
        """Has a copy of what a restart needs. None: it has not, as the tables of older versions."""

    def put(self, bill: Bill) -> None:
        check_bill(bill)
        key = (bill.job_id, bill.head)
        self._ever.setdefault(key, bill)
        if self._stored.setdefault(key, bill) != bill:
            msg = f"Another bill is already at {bill.head.bill_name}"
            raise RecordError(msg, left="It was not touched.", todo="Two jobs share one id: stop both.")

    def read(self, job_id: JobId, head: Head) -> Bill:
        if (job_id, head) not in self._stored and self._table is not None:
            copy = self._table.resume_copy(job_id, head)
            if copy is not None:
                return copy
        key = (job_id, head)
        bill = self._find(self._stored, job_id, head)
        if key not in self._read_before:
            self._read_before[key] = _as_read(bill)
        return self._read_before[key]

    def _find(self, stored: Mapping[tuple[JobId, Head], Bill], job_id: JobId, head: Head) -> Bill:
        bill = stored.get((job_id, head))
        if bill is None:
            msg = f"The head of job {job_id} names a bill that is gone: {head.bill_name}"
            raise HeadLostError(msg, left="Nothing was read or written.", todo="Make a new job.", job_id=job_id)
        return bill

    def heads(self, job_id: JobId) -> list[Head]:
        return sorted(head for owner, head in self._stored if owner == job_id)

    def prune(self, job_id: JobId, *, head: Head, keep_commits: int) -> int:
        """Delete bills more than `keep_commits` behind the head; the lowest seq that is left."""
        limit = head.seq - max(keep_commits, 1)
        for owner, old in list(self._stored):
            if owner == job_id and old.seq <= limit:
                self.forget(job_id, old)
        return limit + 1

    def forget(self, job_id: JobId, head: Head) -> None:
        """Lose a bill."""
        self._stored.pop((job_id, head), None)

    def clean(self) -> set[tuple[JobId, int]]:
        """Another engine removes all files that its table format does not know; the bills that are gone, by seq."""
        gone = {(owner, head.seq) for owner, head in self._stored}
        self._stored.clear()
        return gone

    def read_ever(self, job_id: JobId, head: Head) -> Bill:
        """A bill as it was written, also when its file is gone: for the verifier alone."""
        return self._find(self._ever, job_id, head)
