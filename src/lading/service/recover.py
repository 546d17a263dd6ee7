"""A store that was lost, made again from the tables.

Everything about progress is in the tables: the head of each job, and beside the table the bill that the head names,
with positions, totals and the definition of the job. What only the store had is gone: users and grants, the audit, the
keys that stood in statements, and jobs that had not yet begun.

Nothing begins to run by itself. A job that was stopped or dropped looks like one that was not, so each is PAUSED and
waits for a person. It has its old id: whoever resumes it goes on from the head of the table, and another service that
still runs the job is fenced by that, as always.

What is there already is left as it is, so that a run that was cut off is simply run again. For each job the index of
its bills is made first and the job last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from lading.errors import ConfigError, HeadLostError, JobNotFoundError, LadingError
from lading.ids import JobId
from lading.jobs.events import Created
from lading.jobs.reasons import Reason, ReasonCode
from lading.jobs.record import JobKind, JobRecord, JobState
from lading.jobs.transition import create_record
from lading.model.bill import Bill
from lading.service.compile_routine import window_of
from lading.service.facade import Lading
from lading.service.shelf import CATALOG
from lading.sql.definitions import define_routine_load
from lading.sql.names import check_object_name
from lading.sql.parse import parse_statement
from lading.sql.statements import CreateJob, CreateRoutineLoad
from lading.store.records import AuditEntry
from lading.tables.base import LakeTable
from lading.tables.bills import FOLDER
from lading.tables.card import TableCard, read_card
from lading.tables.storage import Storage, open_storage

MOST_INDEXED = 1000
"""Bills of a job that are put into the index again, newest first."""
WHO = "recovered"
"""Who made a job is not known any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was done, or would be done, with one table or job."""

    what: str
    """table or job."""
    name: str
    fate: str
    """recovered, known, left out, or failed."""
    note: str = ""

    @property
    def is_bad(self) -> bool:
        """Something is there that could not be used."""
        return self.fate == "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A table as it lies there."""

    location: str
    card: TableCard
    storage: Storage
    reach: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"{self.card.database}.{self.card.name}"


def recover(
    lading: Lading, locations: Sequence[str] = (), reach: Mapping[str, str] | None = None, *, dry_run: bool = False
) -> list[Finding]:
    """Look at the tables of the home, and at those at other locations, and give the store what it does not know.

    `reach` says how those other locations are reached, in the properties of CREATE TABLE.
    """
    findings: list[Finding] = []
    jobs: list[tuple[JobRecord, Bill, LakeTable]] = []
    for place in chain(_in_home(lading, findings), _elsewhere(lading, locations, reach or {}, findings)):
        try:
            is_forgotten = lading.shelf.is_forgotten(place.card, place.reach)
            if is_forgotten and not dry_run:
                lading.shelf.give_back(place.card, place.location, place.reach)
            findings.append(_recover_table(lading, place, dry_run=dry_run))
            if is_forgotten and dry_run:
                note = "looked at when the catalog, which is lost too, has the table again"
                findings.append(Finding(what="job", name=f"jobs of {place.name}", fate="left out", note=note))
                continue
            jobs += _jobs_at(lading, place, findings)
        except LadingError as error:
            findings.append(_failed("table", place.name, error))
    # Of jobs that had one name after another only the newest can have it again.
    newest_first = sorted(jobs, key=lambda found: found[1].billed_at, reverse=True)
    taken: set[object] = set()
    for record, bill, table in newest_first:
        findings.append(_recover_job(lading, record, bill, table, taken, dry_run=dry_run))
    return findings


# Tables.


def _in_home(lading: Lading, findings: list[Finding]) -> Iterable[_Place]:
    """The tables of the warehouse, in the order of their names."""
    for folder in sorted(lading.home.warehouse.glob("*/*")):
        if (folder / FOLDER).is_dir():
            for place in _look(str(folder), {}, lading, findings, otherwise=_guess(folder)):
                if (place.card.database, place.card.name) == (folder.parent.name, folder.name):
                    yield place
                else:
                    note = f"it says that it is {place.name}; a copy, or moved: put it back, or out of the warehouse"
                    findings.append(Finding(what="table", name=str(folder), fate="failed", note=note))


def _guess(folder: Path) -> TableCard | None:
    """A table of the warehouse that does not say what it is: its folders do, but for the lengths of texts."""
    formats = {"_delta_log": "delta", "metadata": "iceberg"}
    found = [form for name, form in formats.items() if (folder / name).is_dir()]
    if not found:
        return None
    made = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    catalog = CATALOG if found[0] == "iceberg" else ""
    return TableCard(database=folder.parent.name, name=folder.name, format=found[0], catalog=catalog, created_at=made)


def _elsewhere(
    lading: Lading, locations: Sequence[str], reach: Mapping[str, str], findings: list[Finding]
) -> Iterable[_Place]:
    for location in locations:
        yield from _look(location, reach if "://" in location else {}, lading, findings)


def _look(
    location: str,
    reach: Mapping[str, str],
    lading: Lading,
    findings: list[Finding],
    *,
    otherwise: TableCard | None = None,
) -> Iterable[_Place]:
    try:
        storage = open_storage(location, lading.shelf.options_for(reach))
        card = read_card(storage) or otherwise
        if card is None:
            msg = f"There is no table of Lading at {location}"
            raise ConfigError(msg, left="Nothing was changed.", todo="Name the folder that has _lading/table.json.")
        check_object_name(card.database, "database")
        check_object_name(card.name, "table")
        yield _Place(location=location, card=card, storage=storage, reach=reach)
    except LadingError as error:
        findings.append(_failed("table", location, error))


def _recover_table(lading: Lading, place: _Place, *, dry_run: bool) -> Finding:
    card, shelf = place.card, lading.shelf
    known = lading.store.find_table(card.database, card.name)
    if known is not None:
        if known.location == place.location:
            return Finding(what="table", name=place.name, fate="known")
        msg = f"Table {place.name} is known at {known.location}, and another one of this name lies at {place.location}"
        raise ConfigError(msg, left="The name was not touched.", todo="Drop or move one of the two.")
    if not dry_run:
        shelf.create_database(card.database, if_not_exists=True)
        shelf.keep_reach(card.database, card.name, place.reach)
        shelf.adopt(card, place.location)
    note = f"{card.format} at {place.location}"
    if card.spec is None:
        note += "; it does not say how it was made: lengths of its texts are no longer checked"
    return Finding(what="table", name=place.name, fate="recovered", note=note)


# Jobs.


def _jobs_at(lading: Lading, place: _Place, findings: list[Finding]) -> Iterable[tuple[JobRecord, Bill, LakeTable]]:
    prefix = f"{FOLDER}/"
    folders = {key.removeprefix(prefix).partition("/") for key in place.storage.keys(prefix)}
    for job_id in sorted({JobId(folder) for folder, slash, _ in folders if slash}):
        try:
            if (known := _known(lading, job_id)) is not None:
                findings.append(Finding(what="job", name=str(known.full_name), fate="known", note=known.state.value))
                continue
            table = lading.shelf.open_at(place.card, place.location, place.reach)
            head = table.read_head(job_id)
            if head is None:
                note = f"its first commit into {place.name} never landed, so it has loaded nothing"
                findings.append(Finding(what="job", name=job_id, fate="left out", note=note))
                continue
            bill = table.bills.read(job_id, head)
            yield _record_of(lading, bill, place), bill, table
        except LadingError as error:
            findings.append(_failed("job", job_id, error))


def _known(lading: Lading, job_id: JobId) -> JobRecord | None:
    try:
        return lading.store.load_job_by_id(job_id).record
    except JobNotFoundError:
        return None


def _record_of(lading: Lading, bill: Bill, place: _Place) -> JobRecord:
    """The record of a job as its newest bill tells of it, paused."""
    statement = parse_statement(bill.definition)
    if not isinstance(statement, CreateJob | CreateRoutineLoad):
        msg = f"The bill {bill.seq} of job {bill.job_id} has a definition that makes no job"
        raise ConfigError(msg, left="Nothing was changed.", todo="Make the job again, with a start of your choice.")
    if _target(statement) != place.name:
        msg = f"Job {bill.job_id} loads into {_target(statement)}, and its bills lie beside {place.name}"
        raise ConfigError(msg, left="Nothing was changed.", todo="This is a copy of another table, or was renamed.")
    event = Created(
        job_id=bill.job_id,
        name=statement.name if isinstance(statement, CreateJob) else statement.name.name,
        database=place.card.database,
        kind=JobKind.STREAMING if isinstance(statement, CreateJob) else JobKind.ROUTINE,
        definition=bill.definition,
        target=place.name,
        properties=dict(statement.properties),
        comment=statement.comment or "",
        user=WHO,
        window=None if isinstance(statement, CreateJob) else window_of(define_routine_load(statement).properties),
        at=bill.planned_at,
    )
    record, _ = create_record(event)
    message = f"Recovered from {place.name} as of its commit {bill.seq}; RESUME it, or drop it if it was stopped"
    return replace(
        record,
        state=JobState.PAUSED,
        reason=Reason(code=ReasonCode.MANUAL_PAUSE_ERR, message=message),
        paused_at=lading.clock.now(),
        last_seen=bill.head,
        totals=bill.totals,
        window_base=bill.totals.rows,
        last_success_at=bill.billed_at,
    )


def _target(statement: CreateJob | CreateRoutineLoad) -> str:
    if isinstance(statement, CreateJob):
        return f"{statement.insert.table.db}.{statement.insert.table.name}"
    return f"{statement.name.db}.{define_routine_load(statement).table}"


def _recover_job(
    lading: Lading, record: JobRecord, bill: Bill, table: LakeTable, taken: set[object], *, dry_run: bool
) -> Finding:
    name, full = str(record.full_name), record.full_name
    if full in taken or lading.store.find_job(full) is not None:
        note = f"{record.job_id}, last commit {bill.billed_at:%Y-%m-%d %H:%M}: a newer job has the name"
        return Finding(what="job", name=name, fate="left out", note=note)
    taken.add(full)
    note = f"{bill.totals.rows.loaded:,} rows loaded, last commit {bill.billed_at:%Y-%m-%d %H:%M}; PAUSED"
    if dry_run:
        return Finding(what="job", name=name, fate="recovered", note=note)
    for older in reversed(_chain(table, bill)):
        lading.store.follow(older)
    entry = AuditEntry(at=lading.clock.now(), user=WHO, action="RECOVER", job_id=record.job_id, subject=name)
    lading.store.create_job(record, audit=entry)
    return Finding(what="job", name=name, fate="recovered", note=note)


def _chain(table: LakeTable, newest: Bill) -> list[Bill]:
    """Bills from the newest one back, as far as they are kept."""
    found = [newest]
    while (older := found[-1].continues) is not None and len(found) < MOST_INDEXED:
        try:
            found.append(table.bills.read(newest.job_id, older))
        except HeadLostError:
            break  # It was pruned.
    return found


def _failed(what: str, name: str, error: LadingError) -> Finding:
    return Finding(what=what, name=name, fate="failed", note=str(error))
