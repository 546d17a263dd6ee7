"""Looking after what Lading itself leaves in a table, so that the millionth commit costs what the hundredth did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from lading.ids import JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class CarePolicy:
    """What is kept, and how often it is looked at.

    At least `keep_commits` commits and `keep_age` of history are kept. Where a format pays for every snapshot at
    every commit (Iceberg), the history between the newest `keep_commits` and `keep_age` is thinned to one snapshot
    per `thin_to`, so that a job that commits every second can still go back a day. Bills are not thinned.

    This is the upper bound of what is removed. The table's own settings are another: what they say to keep is kept,
    without gaps, and what they say in words that are not understood keeps everything. Nothing goes within `grace`.
    """

    keep_commits: int = 100
    keep_age: timedelta = timedelta(days=1)
    thin_to: timedelta = timedelta(minutes=30)
    every_commits: int = 50
    grace: timedelta = timedelta(minutes=10)
    """Short, because Iceberg pays for it: a job that commits every second has so many more snapshots."""


def told_astray(jobs: Iterable[JobId]) -> str:
    """Why nothing is removed while a rollback waits for somebody's word."""
    return f"the table was rolled back behind the last commit of job {', '.join(jobs)}; see SHOW ROLLBACK"


@dataclass(frozen=True, slots=True, kw_only=True)
class CareReport:
    """What one round removed or made."""

    snapshots_expired: int = 0
    bills_deleted: int = 0
    checkpoint_made: bool = False
    remark: str = ""
    """Why nothing was removed from the table's history, when that is for a person to know."""
