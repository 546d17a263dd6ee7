"""Removing what failed and killed attempts left: files beside tables, and bad rows of batches that never were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lading.clock import Moment
from lading.errors import ConfigError, LadingError
from lading.ids import JobId
from lading.jobs.record import JobState
from lading.service.installation import Installation
from lading.service.result import Result, table
from lading.service.runtime.replaying import replays_since
from lading.service.session import Session
from lading.sql.statements.admin import CleanOrphans
from lading.store.records import TableEntry
from lading.tables.base import LakeTable
from lading.tables.bills import StoredBills, quarantine_folder
from lading.tables.orphans import Orphan, bills_written, find_orphans, remove_orphans, storage_now

SAFE_AGE = timedelta(days=3)
"""Files of a batch that is being staged are younger than that."""
LEAST_AGE = timedelta(hours=1)
QUARANTINE = "bad rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What was found beside one table."""

    table: str
    found: tuple[Orphan, ...] = ()
    remark: str = ""
    """Why nothing was looked at."""


def execute_clean(session: Session, statement: CleanOrphans) -> Result:
    """ADMIN CLEAN ORPHANS."""
    age = SAFE_AGE if statement.older_than is None else statement.older_than
    if age < LEAST_AGE:
        msg = f"Orphans are at least an hour old, not {age}"
        todo = "Files of a batch that is being staged are named by nothing yet. Ask for 1 HOURS or more."
        raise ConfigError(msg, left="Nothing was deleted.", todo=todo)
    entries = session.lading.store.list_tables()
    if statement.table is not None:
        database = statement.table.within(session.database)
        entries = [session.lading.catalog.require_table(database, statement.table.name)]
    rows: list[tuple[object, ...]] = []
    for entry in entries:
        cleaned = clean_table(session.lading, entry, age=age, dry_run=statement.dry_run)
        rows += [(cleaned.table, each.what, each.path, each.size or None, "") for each in cleaned.found]
        rows += [(cleaned.table, None, None, None, cleaned.remark)] if cleaned.remark else []
    return table(("Table", "Kind", "Path", "Bytes", "Remark"), rows)


def clean_table(lading: Installation, entry: TableEntry, *, age: timedelta, dry_run: bool) -> Cleaned:
    """Remove the orphans of one table. What cannot be looked at is told and stays."""
    name = f"{entry.database}.{entry.name}"
    older_than = _steady_now(lading) - age
    try:
        lake = lading.catalog.open_table(entry.database, entry.name)
        older_than = min((older_than, *_begun(lading, lake, name)))
        found = [*find_orphans(lake, older_than=older_than), *_bad_objects(lake, older_than)]
        if found and not dry_run:
            # The clock of this machine may be ahead of the one that the files have their times from. And a second look,
            # with nothing between it and the deletion that takes time.
            older_than = min(older_than, storage_now(lake.bills.storage) - age)
            found = [*_bad_objects(lake, older_than), *find_orphans(lake, older_than=older_than)]
            remove_orphans(lake, found)
        bad_rows = list(_bad_rows(lading, lake, older_than))
        if not dry_run:
            for orphan in bad_rows:
                (lading.home.path / orphan.path).unlink(missing_ok=True)
    except LadingError as error:
        return Cleaned(table=name, remark=error.what)
    except OSError as error:
        return Cleaned(table=name, remark=f"a file could not be looked at: {error.strerror}")
    return Cleaned(table=name, found=(*found, *bad_rows))


def _begun(lading: Installation, lake: LakeTable, name: str) -> Iterator[datetime]:
    """When running batches and replays of this store began to write to a table, under whatever name: their files are
    younger.

    A batch begins after the commit before it, and the bill of that one has its time from where the files have theirs.
    The clock of who runs the batch may be ahead.
    """
    replays = replays_since(lading.store)
    running = dict[JobId, tuple[str, datetime]]()
    for record in [stored.record for stored in lading.store.list_jobs()]:
        if record.task is not None:
            running[record.job_id] = record.target, record.task.created_at
        elif record.state is JobState.PAUSED and record.job_id in replays:
            running[record.job_id] = record.target, replays[record.job_id]
    written = bills_written(lake.bills.storage) if running else {}
    for job_id, (target, at) in running.items():
        if job_id in written:
            yield written[job_id]
        if job_id in written or target == name:
            yield at


def _steady_now(lading: Installation) -> datetime:
    """The time, also after somebody set the clock forwards: files would look older than they are."""
    moment = Moment.of(lading.clock)
    return moment.wall - max(lading.leases.opened.jump_to(moment), timedelta())


def _bad_rows(lading: Installation, lake: LakeTable, older_than: datetime) -> Iterator[Orphan]:
    """Quarantine files of attempts that were not committed.

    A bill names those of its batch. Bills are kept for a while only: older files are of batches that nobody can tell
    from failed attempts any more, and stay.
    """
    for job_id in sorted(lake.job_ids()):
        folder = Path(lading.home.quarantine(job_id))
        files = [path for path in sorted(folder.glob("*.jsonl")) if _modified(path) < older_than]
        if not files:
            continue
        named, oldest = _named(lake.bills, job_id)
        for path in files:
            if path.name not in named and oldest is not None and _modified(path) > oldest:
                shown = str(path.relative_to(lading.home.path))
                yield Orphan(path=shown, what=QUARANTINE, size=path.stat().st_size)


def _bad_objects(lake: LakeTable, older_than: datetime) -> Iterator[Orphan]:
    """The same beside the table: of services that share a store, and of a cluster."""
    for job_id in sorted(lake.job_ids()):
        storage, prefix = lake.bills.storage, f"{quarantine_folder(job_id)}/"
        if next(iter(storage.keys(prefix)), None) is None:
            continue  # There may be no such folder.
        # The objects first: what is committed meanwhile is named by a bill that is read after it.
        there = list(storage.list(prefix))
        named, oldest = _named(lake.bills, job_id)
        for info in there:
            is_named = info.key.rpartition("/")[2] in named
            if info.modified < older_than and not is_named and oldest is not None and info.modified > oldest:
                yield Orphan(path=info.key, what=QUARANTINE, size=info.size)


def _named(bills: StoredBills, job_id: JobId) -> tuple[set[str], datetime | None]:
    """The quarantine files that all kept bills name, and when the oldest of these was written."""
    kept = [bills.read(job_id, head) for head in bills.heads(job_id)]
    oldest = min((bill.billed_at for bill in kept), default=None)
    # By their names: the home may be called otherwise than when they were written.
    return {Path(path).name for bill in kept for path in bill.quarantine}, oldest


def _modified(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)
