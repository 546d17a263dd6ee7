"""The commits of a job since some moment: as many are read as there are since then, however old the job is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from lading.store.records import BillEntry

FIRST_PAGE, PAGE = 100, 500
Turn = Callable[[int, int | None], list[BillEntry]]
"""So many entries before a seq, or the newest, newest first."""


def entries_since(turn: Turn, start: datetime, *, most: int) -> tuple[list[BillEntry], bool]:
    """All since then, with some older ones, newest first; and whether there were too many, so that some are missing."""
    found: list[BillEntry] = []
    before: int | None = None
    while len(found) < most:
        size = min(PAGE if found else FIRST_PAGE, most - len(found))
        entries = turn(size, before)
        found += entries
        if len(entries) < size or entries[-1].billed_at < start:
            return found, False
        before = entries[-1].seq
    return found, True
