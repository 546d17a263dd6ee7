"""A store that was lost, made again from the tables.

Everything about progress is in the tables: the head of each job, and beside the table the bill that the head names,
with positions, totals and the definition of the job. What only the store had is gone: users and grants, the audit, the
keys that stood in statements, and jobs whose CREATE was cut off.

Nothing begins to run by itself. A job that was stopped or dropped looks like one that was not, so each is PAUSED and
waits for a person. It has its old id: RESUME goes on from the head of the table, and another service that
still runs the job is fenced by that, as always.

What is there already is left as it is, so that a run that was cut off is simply run again. Of each table everything
is looked at before anything is written: then the catalog gets it, then the store. For each job the index of its bills
is made first and the job last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from lading.errors import ConfigError, HeadLostError, JobNotFoundError, LadingError, RecordError
from lading.ids import JobId, is_errors_id
from lading.jobs.events import Created
from lading.jobs.reasons import RECOVERED, Reason, ReasonCode
from lading.jobs.record import JobRecord, JobState
from lading.jobs.transition import create_record
from lading.model.bill import Bill
from lading.service.catalog.lost_home import find_tables, mark_begun
from lading.service.compile.compiler import window_of
from lading.service.compile.sourced import dialect_of, source_of
from lading.service.facade import Lading
from lading.service.security.endpoints import endpoints_of, job_subject, table_subject
from lading.service.security.reach import hosts_of
from lading.sources.registry import kind_of
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.statements.load_specs import load_spec, source_spec
from lading.sql.syntax.names import check_object_name
from lading.sql.syntax.parse import parse_statement
from lading.sql.syntax.spans import is_reference, is_secret
from lading.storage.store import ObjectStore, open_store
from lading.store.records import AuditEntry
from lading.tables.bills import FOLDER, StoredBills
from lading.tables.kind import FoundTable, TableSight
from lading.tables.manifest import TableCard, is_same_place, read_card, settle_place
from lading.tables.registry import all_kinds

MOST_INDEXED = 1000
"""Bills of a job that are put into the index again, newest first."""
WHO = "recovered"
"""Who made a job is not known any more."""
_NAMED = re.compile(r"([^\W\d][\w$-]*)\.([^\W\d][\w$-]*)=(.+)")
"""database.table=location."""


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
    storage: ObjectStore
    reach: Mapping[str, str]
    is_home: bool

    @property
    def name(self) -> str:
        return f"{self.card.database}.{self.card.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A job as its newest bill tells of it."""

    record: JobRecord
    bill: Bill
    bills: StoredBills
    lost_state: str
    """The first of its state files that is gone; empty when it keeps none, or all of them are there."""


def recover(
    lading: Lading, locations: Sequence[str] = (), reach: Mapping[str, str] | None = None, *, dry_run: bool = False
) -> list[Finding]:
    """Look at the tables of the home, and at those at other locations, and give the store what it does not know.

    A location may be written `database.table=location`, for a table that does not say what it is. `reach` says how
    those other locations are reached, in the properties of CREATE TABLE.
    """
    findings: list[Finding] = []
    jobs: list[_Found] = []
    seen: dict[str, str] = {}
    for place in chain(_in_home(lading, findings), _elsewhere(lading, locations, reach or {}, findings)):
        try:
            if place.name in seen and is_same_place(seen[place.name], place.location):
                continue
            _check_name(lading, place, seen)
            with lading.catalog.find_table(place.card, place.location, place.reach) as found:
                findings.append(_recover_table(lading, place, found, dry_run=dry_run))
                seen[place.name] = place.location
                jobs += _jobs_at(lading, place, found.sight, findings)
        except LadingError as error:
            findings.append(_failed("table", place.name, error))
    # Of jobs that had one name after another only the newest can have it again.
    taken: set[object] = set()
    for job in sorted(jobs, key=lambda job: job.bill.billed_at, reverse=True):
        try:
            findings.append(_recover_job(lading, job, taken, dry_run=dry_run))
        except LadingError as error:
            findings.append(_failed("job", str(job.record.full_name), error))
    if not dry_run and not any(finding.is_bad for finding in findings):
        mark_begun(lading.store, lading.clock)
    return findings


# Tables.


def _in_home(lading: Lading, findings: list[Finding]) -> Iterable[_Place]:
    """The tables of the warehouse, in the order of their names."""
    for folder in find_tables(lading.home.warehouse):
        for place in _look(lading, str(folder), {}, findings, named=(folder.parent.name, folder.name), is_home=True):
            if (place.card.database, place.card.name) == (folder.parent.name, folder.name):
                yield place
            else:
                note = f"it says that it is {place.name}; a copy, or moved: put it back, or out of the warehouse"
                findings.append(Finding(what="table", name=str(folder), fate="failed", note=note))


def _elsewhere(
    lading: Lading, locations: Sequence[str], reach: Mapping[str, str], findings: list[Finding]
) -> Iterable[_Place]:
    for given in locations:
        match = _NAMED.fullmatch(given)
        location = settle_place(match[3] if match else given)
        named = (match[1], match[2]) if match else None
        for place in _look(lading, location, reach if "://" in location else {}, findings, named=named):
            if named in (None, (place.card.database, place.card.name)):
                yield place
            else:
                note = f"it says that it is {place.name}; name it by its location alone, if that is right"
                findings.append(Finding(what="table", name=given, fate="failed", note=note))


def _look(
    lading: Lading,
    location: str,
    reach: Mapping[str, str],
    findings: list[Finding],
    *,
    named: tuple[str, str] | None,
    is_home: bool = False,
) -> Iterable[_Place]:
    """The table at a place. `named` is what it is called when it does not say so itself."""
    try:
        storage = open_store(location, lading.catalog.options_for(reach))
        card = read_card(storage) or (_guess(lading, storage, *named, is_home=is_home) if named else None)
        if card is None:
            msg = f"There is no table of Lading at {location}"
            todo = (
                f"Name the folder that has {FOLDER}/table.json. For a table that was made before Lading wrote this "
                f"file, say what it is called: database.table={location}"
            )
            raise ConfigError(msg, left="Nothing was changed.", todo=todo)
        check_object_name(card.database, "database")
        check_object_name(card.name, "table")
        yield _Place(location=location, card=card, storage=storage, reach=reach, is_home=is_home)
    except LadingError as error:
        findings.append(_failed("table", location, error))


def _guess(lading: Lading, storage: ObjectStore, database: str, name: str, *, is_home: bool) -> TableCard | None:
    """The card of a table that has none: its files tell the format, but neither lengths of texts nor its age."""
    kinds = [kind for kind in all_kinds() if next(iter(storage.keys(f"{kind.folder}/")), None) is not None]
    if len(kinds) > 1:
        msg = f"At {storage.uri} are files of two tables, one of {kinds[0].title} and one of {kinds[1].title}"
        raise ConfigError(msg, left="Nothing was changed.", todo="Move the files of the table that was dropped away.")
    if not kinds:
        return None
    if not is_home:
        kinds[0].check_owned(storage)
    form, catalog = kinds[0].name, kinds[0].catalog
    return TableCard(database=database, name=name, format=form, catalog=catalog, created_at=lading.clock.now())


def _check_name(lading: Lading, place: _Place, seen: Mapping[str, str]) -> None:
    """Refuse a table whose name, or whose place, another one has."""
    tables = {**seen, **{f"{entry.database}.{entry.name}": entry.location for entry in lading.store.list_tables()}}
    taken = tables.pop(place.name, place.location)
    if not is_same_place(taken, place.location):
        msg = f"Table {place.name} is known at {taken}, and another one of this name is at {place.location}"
        todo = "Move the copy out of the way. Do not DROP the table: that may delete its files."
        raise ConfigError(msg, left="Nothing was changed.", todo=todo)
    for other, location in tables.items():
        if is_same_place(location, place.location):
            msg = f"The table at {place.location} is already known, as {other}"
            raise ConfigError(msg, left="Nothing was changed.", todo=f"Use it as {other}.")


def _recover_table(lading: Lading, place: _Place, found: FoundTable, *, dry_run: bool) -> Finding:
    """Everything was checked; write what is not there."""
    card, catalog, notes = place.card, lading.catalog, [f"{place.card.format} at {place.location}"]
    is_known = lading.store.find_table(card.database, card.name) is not None
    notes += found.notes
    if found.give_back is not None and not dry_run:
        # Dies after this: the catalog names the table, and the store does not. The next run goes on from there.
        found.give_back()
    if is_known and found.give_back is None:
        return Finding(what="table", name=place.name, fate="known")
    if is_known:
        return Finding(what="table", name=place.name, fate="recovered", note="; ".join(notes))
    if not dry_run:
        catalog.create_database(card.database, if_not_exists=True)
        catalog.keep_reach(card.database, card.name, place.reach)
        lading.endpoints.allow(table_subject(card.database, card.name), endpoints_of(place.reach))
        # One that has no card was made by others, or before there were cards.
        catalog.adopt(card, place.location, is_adopted=not place.is_home and card.spec is None)
    if card.spec is None:
        notes.append("it does not say how it was made: lengths of its texts are no longer checked")
    return Finding(what="table", name=place.name, fate="recovered", note="; ".join(notes))


# Jobs.


def _jobs_at(lading: Lading, place: _Place, sight: TableSight, findings: list[Finding]) -> Iterable[_Found]:
    prefix = f"{FOLDER}/"
    folders = {key.removeprefix(prefix).partition("/") for key in place.storage.keys(prefix)}
    # Other engines may have removed the bills as orphans: the table itself knows its jobs, too.
    job_ids = {JobId(folder) for folder, slash, _ in folders if slash} | sight.job_ids()
    # The bad rows of a job have a head and bills in its errors table: the job is beside the table that it loads.
    for job_id in sorted(each for each in job_ids if not is_errors_id(each)):
        try:
            if (known := _known(lading, job_id)) is not None:
                findings.append(Finding(what="job", name=str(known.full_name), fate="known", note=known.state.value))
                continue
            head = sight.read_head(job_id)
            if head is None:
                note = (
                    f"it has loaded nothing into {place.name}: its first commit never landed, or it loaded into a "
                    "table that was dropped"
                )
                findings.append(Finding(what="job", name=job_id, fate="left out", note=note))
                continue
            bill = sight.bills.read(job_id, head)
            lost = _lost_state(sight.bills, bill)
            yield _Found(record=_record_of(lading, bill, place, lost), bill=bill, bills=sight.bills, lost_state=lost)
        except LadingError as error:
            findings.append(_failed("job", job_id, error))


def _known(lading: Lading, job_id: JobId) -> JobRecord | None:
    try:
        return lading.store.load_job_by_id(job_id).record
    except JobNotFoundError:
        return None


def _record_of(lading: Lading, bill: Bill, place: _Place, lost_state: str) -> JobRecord:
    """The record of a job as its newest bill tells of it, paused."""
    statement = _statement_of(bill)
    spec = load_spec(statement)
    if spec.target != place.name:
        msg = f"Job {bill.job_id} loads into {spec.target}, and its bills lie beside {place.name}"
        raise ConfigError(msg, left="Nothing was changed.", todo="This is a copy of another table, or was renamed.")
    event = Created(
        job_id=bill.job_id,
        name=spec.name,
        database=place.card.database,
        kind=dialect_of(statement).kind,
        definition=bill.definition,
        spec=spec,
        target=place.name,
        properties=dict(statement.properties),
        comment=statement.comment or "",
        user=WHO,
        window=window_of(spec),
        at=bill.planned_at,
    )
    record, _ = create_record(event)
    message = (
        f"{RECOVERED}{place.name} as of its commit {bill.seq}. Read its definition first; keys that stood in the "
        "statement are gone, ALTER gives them again. Then RESUME it, or drop it if it was stopped"
    )
    if lost_state:
        message += f". {_without_state(lost_state)}"
    return replace(
        record,
        state=JobState.PAUSED,
        reason=Reason(code=ReasonCode.MANUAL_PAUSE_ERR, message=message),
        paused_at=lading.clock.now(),
        last_seen=bill.head,
        totals=bill.totals,
        watermark_us=bill.positions.watermark_us,
        kept=bill.state,
        window_base=bill.totals.rows,
        last_success_at=bill.billed_at,
        current_offset=kind_of(spec.source.kind).position_text(bill.positions),
    )


def _lost_state(bills: StoredBills, bill: Bill) -> str:
    try:
        return bills.missing_state(bill.job_id, bill.state) if bill.state is not None else ""
    except RecordError:  # Its manifest is there, and cut.
        return bill.state.manifest if bill.state is not None else ""


def _without_state(lost: str) -> str:
    """What becomes of a job that was dropped: its state goes after days, and its bills stay."""
    return (
        f"Its state is gone ({lost} is missing or damaged), so it cannot go on as it is. Before RESUME restore it and "
        "the other files of its state from a copy of the table's _lading folder; or move the job with ALTER: to a "
        'commit whose state is still there, PROPERTIES ("state" = "COMMIT 17"), or without any, PROPERTIES ("state" = '
        '"RESET")'
    )


def _statement_of(bill: Bill) -> CreateJob | CreateRoutineLoad:
    statement = parse_statement(bill.definition)
    if not isinstance(statement, CreateJob | CreateRoutineLoad):
        msg = f"The bill {bill.seq} of job {bill.job_id} has a definition that makes no job"
        raise ConfigError(msg, left="Nothing was changed.", todo="Make the job again, with a start of your choice.")
    return statement


def _recover_job(lading: Lading, found: _Found, taken: set[object], *, dry_run: bool) -> Finding:
    record, bill = found.record, found.bill
    name, full = str(record.full_name), record.full_name
    if full in taken or lading.store.find_job(full) is not None:
        note = f"{record.job_id}, last commit {bill.billed_at:%Y-%m-%d %H:%M}: a newer job has the name"
        return Finding(what="job", name=name, fate="left out", note=note)
    taken.add(full)
    notes = [f"{bill.totals.rows.loaded:,} rows loaded, last commit {bill.billed_at:%Y-%m-%d %H:%M}; PAUSED"]
    if references := _references(_statement_of(bill)):
        notes.append(f"it reads secrets from {', '.join(references)}")
    if found.lost_state:
        notes.append(_without_state(found.lost_state))
    chain_of_bills, why = _chain(found)
    record = replace(record, created_at=chain_of_bills[-1].planned_at)
    if why:
        notes.append(f"its history begins at commit {chain_of_bills[-1].seq}: {why}")
    if not dry_run:
        for older in reversed(chain_of_bills):
            lading.store.follow(older)
        entry = AuditEntry(at=lading.clock.now(), user=WHO, action="RECOVER", job_id=record.job_id, subject=name)
        lading.endpoints.allow(job_subject(record.job_id), hosts_of(source_spec(source_of(_statement_of(bill)))))
        lading.store.create_job(record, audit=entry)
    return Finding(what="job", name=name, fate="recovered", note="; ".join(notes))


def _references(statement: CreateJob | CreateRoutineLoad) -> list[str]:
    """Where the definition has secrets read from. RESUME sends them to where it says."""
    properties = {**statement.properties, **source_of(statement).properties}
    return sorted({value for name, value in properties.items() if is_secret(name) and is_reference(value)})


def _chain(found: _Found) -> tuple[list[Bill], str]:
    """Bills from the newest one back, as far as they are kept, and why they end when that is odd."""
    bills = [found.bill]
    while (older := bills[-1].continues) is not None and len(bills) < MOST_INDEXED:
        try:
            bills.append(found.bills.read(found.bill.job_id, older))
        except HeadLostError:
            break  # It was pruned.
        except LadingError as error:
            return bills, error.what
    return bills, ""


def _failed(what: str, name: str, error: LadingError) -> Finding:
    return Finding(what=what, name=name, fate="failed", note=str(error))
