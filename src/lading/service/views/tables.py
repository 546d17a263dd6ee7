"""Tables as pages show them: where they are, who loads them, and which job made which commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import merge
from itertools import islice

from lading.jobs.record import JobRecord
from lading.service.installation import Installation
from lading.service.views.build import redacted, show_bill
from lading.service.views.compaction import loaded_tables, name_of
from lading.service.views.records import BillView
from lading.store.records import TableEntry

_NEVER = datetime.fromtimestamp(0, UTC)
MOST_VERSIONS = 50
"""Of a table's history, for a page: a version of Delta is a request to its store."""
SeesTable = Callable[[str, str], bool]
SeesJob = Callable[[JobRecord], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """A table that somebody may see."""

    name: str
    """With its database, and with its catalog when that is of others."""
    database: str
    table: str
    format: str
    location: str
    """Empty where the catalog of others knows it."""
    created_at: datetime
    jobs: tuple[str, ...]
    """Those that load it now, as far as they may be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCommit:
    """A commit of a table, and the job that made it."""

    job: str
    bill: BillView


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """One version of a table, or a commit of a job whose version is not kept any more."""

    at: datetime | None
    version: str
    """Empty for a commit without one."""
    what: str
    """What the writer of the version calls it."""
    job: str = ""
    """Empty where no job did it, or none that may be seen."""
    seq: int | None = None
    """Of the job's commit."""
    bill: BillView | None = None


def list_tables(lading: Installation, sees_table: SeesTable, sees_job: SeesJob) -> list[TableView]:
    """The tables of the installation, and those of other catalogs that jobs load into, by name."""
    loads: dict[str, list[str]] = {}
    for stored in lading.store.list_jobs():
        if sees_job(stored.record):
            loads.setdefault(stored.record.target, []).append(str(stored.record.full_name))
    seen = [entry for entry in loaded_tables(lading) if sees_table(entry.database, entry.name)]
    return [_show(entry, loads) for entry in sorted(seen, key=name_of)]


def _show(entry: TableEntry, loads: dict[str, list[str]]) -> TableView:
    return TableView(
        name=name_of(entry),
        database=entry.database,
        table=entry.name,
        format=entry.format,
        location=redacted(entry.location),
        created_at=entry.created_at,
        jobs=tuple(sorted(loads.get(name_of(entry), ()))),
    )


def table_history(lading: Installation, table: TableView, sees_job: SeesJob) -> list[TableChange]:
    """The newest versions of a table, each with the commit that made it, and commits without a version between them.

    Raises LadingError when the table cannot be read.
    """
    commits = table_commits(lading, table.name, sees_job)
    lake = lading.catalog.open_table(table.database, table.table)
    names = {
        stored.record.job_id: str(stored.record.full_name)
        for stored in lading.store.list_jobs(include_final=True)
        if sees_job(stored.record)
    }
    bills = {(commit.job, commit.bill.seq, commit.bill.token): commit.bill for commit in commits}
    found: list[TableChange] = []
    for version in lake.history(MOST_VERSIONS):
        job = names.get(version.job_id, "") if version.job_id is not None else ""
        bill = bills.pop((job, version.head.seq, str(version.head.token)), None) if version.head else None
        at, seq = bill.billed_at if bill else version.at, version.head.seq if version.head and job else None
        found.append(TableChange(at=at, version=version.name, what=version.what, job=job, seq=seq, bill=bill))
    rest = [
        TableChange(at=bill.billed_at, version="", what="", job=job, seq=seq, bill=bill)
        for (job, seq, _), bill in bills.items()
    ]
    return list(merge(found, rest, key=lambda change: change.at or _NEVER, reverse=True))


def table_commits(lading: Installation, name: str, sees_job: SeesJob, *, limit: int = 50) -> list[TableCommit]:
    """Commits of the jobs that load a table or did so, newest first."""
    jobs = [
        stored.record
        for stored in lading.store.list_jobs(include_final=True)
        if stored.record.target == name and sees_job(stored.record)
    ]
    found = (
        [
            TableCommit(job=str(record.full_name), bill=show_bill(entry))
            for entry in lading.store.list_bills(record.job_id, limit=limit)
        ]
        for record in jobs
    )
    return list(islice(merge(*found, key=lambda commit: commit.bill.billed_at, reverse=True), limit))
