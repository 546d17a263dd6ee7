"""Somebody who is told what a job has committed, in memory, and what must be true of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lading.ids import JobId
from lading.model.bill import Bill
from lading.model.notices import ListenerFailure, Notice, NoticeKey
from lading.tables.memory import MemoryTable
from lading.testing.verdict import LOSS, PROGRESS_MISMATCH, Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One notice that came."""

    key: NoticeKey
    is_committed: bool
    """Whether the bill that it comes from had been committed at that moment."""


class ScriptedListeners:
    """Implements the coordinator's Listeners: takes everything, at once."""

    failures: tuple[ListenerFailure, ...] = ()

    def __init__(self, table: MemoryTable, job_id: JobId, told: list[Told]) -> None:
        self._table = table
        self._job_id = job_id
        self._told = told

    def is_due(self, notices: Sequence[Notice]) -> bool:
        return bool(notices)

    def tell(self, bill: Bill, notices: Sequence[Notice]) -> Collection[NoticeKey]:
        is_committed = any(version.heads.get(self._job_id) == bill.head for version in self._table.versions)
        self._told.extend(Told(key=each.key, is_committed=is_committed) for each in notices)
        return [each.key for each in notices]


def check_told(told: Sequence[Told], lineage: Sequence[Bill], findings: Findings) -> None:
    """Nobody is told of a commit that is not in the table, and no notice is dropped before it was told."""
    early = sorted(each.key for each in told if not each.is_committed)
    findings.expect(not early, PROGRESS_MISMATCH, f"told of {early[:1]} before it was committed")
    known = {each.key for each in told}
    for before, bill in pairwise(lineage):
        later = _notices(bill)
        for notice in _notices(before):
            is_kept = any(each.key == notice.key or _replaces(each, notice) for each in later)
            text = f"seq {bill.seq} drops {notice.key}, which nobody was told"
            findings.expect(is_kept or notice.key in known, LOSS, text)


def _notices(bill: Bill) -> tuple[Notice, ...]:
    return bill.listening.notices if bill.listening is not None else ()


def _replaces(newer: Notice, older: Notice) -> bool:
    return (newer.listener, newer.partition) == (older.listener, older.partition) and newer.seq > older.seq
