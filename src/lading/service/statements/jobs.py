"""What the statements about jobs that load files do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lading.errors import ConfigError, ConflictError, JobNotFoundError
from lading.ids import new_job_id
from lading.jobs.events import Created, Event, PausedByUser, Resumed, Stopped
from lading.jobs.record import JobKind, JobName, JobRecord
from lading.jobs.transition import create_record
from lading.model.bill import Head
from lading.model.file_offset import render_offset
from lading.model.moves import PartitionMove
from lading.model.positions import Positions
from lading.service.compile.file_offsets import warn_outside, whole_name
from lading.service.compile.sourced import source_of
from lading.service.edits.audit import apply, audit
from lading.service.edits.begun import finish_begun, settled
from lading.service.edits.create import create_open_job
from lading.service.edits.edit import Edit, check_paused
from lading.service.edits.lost_secrets import statement_to_alter
from lading.service.edits.written import written_statement
from lading.service.result import Result, done
from lading.service.runtime.ended_jobs import tell_table
from lading.service.security.authorization import is_local
from lading.service.session import Session
from lading.service.statements.reach import allow_hosts, check_source
from lading.service.telemetry.recent import forget_lag
from lading.sources.files.source import parse_offset
from lading.sql.properties.jobs import read_job_properties
from lading.sql.statements.alter import alter_streaming_job
from lading.sql.statements.definitions import define_streaming_job
from lading.sql.statements.jobs import AlterJob, ControlJob, CreateJob
from lading.sql.statements.load_specs import load_spec
from lading.sql.statements.parts import InsertSelect, SourceFunction
from lading.sql.syntax.masking import without_secrets
from lading.sql.syntax.render import render

ALSO_LOAD = "s3.also_load"


def create_job(session: Session, statement: CreateJob) -> Result:
    check_source(session, statement.insert.source)
    definition = define_streaming_job(statement)
    if session.lading.store.find_job(JobName(kind=JobKind.STREAMING, name=statement.name)) is not None:
        msg = f"job name exist: {statement.name}"
        raise ConflictError(
            msg, code="JobExists", left="It was not touched.", todo="Choose another name, or drop it first."
        )
    database = definition.table.db if definition.table.db is not None else session.database
    qualified = replace(definition.table, db=database)
    insert = _bound(session, replace(statement.insert, table=qualified, source=_located(statement.insert.source)))
    properties = _located_names(statement.properties, insert.source)
    statement = replace(statement, insert=insert, properties=properties)
    kept, spec = without_secrets(statement), load_spec(statement)
    event = Created(
        job_id=new_job_id(),
        name=statement.name,
        database=session.database,
        kind=JobKind.STREAMING,
        definition=render(kept),
        spec=spec,
        target=spec.target,
        properties=dict(kept.properties),
        comment=statement.comment or "",
        user=session.user,
        at=session.lading.clock.now(),
    )
    record, _ = create_record(event)
    # Dies after this: secrets of a job that does not exist, which nobody reads.
    session.lading.keep_secrets(record.job_id, insert.source.properties, kept.insert.source.properties)
    allow_hosts(session, record.job_id, statement.insert.source)
    # Everything is checked against the table and the files before the job exists; keys and roles by a first listing.
    create_open_job(session, record, statement)
    warning = warn_outside(parse_offset(properties.get("offset", "")), insert.source)
    return done(f"job {statement.name} created" + (f"; warning: {warning}" if warning else ""))


def _bound(session: Session, insert: InsertSelect) -> InsertSelect:
    """The same with the columns that it fills by name: those that others add to the table later are not among them."""
    if insert.columns:
        return insert
    table = session.lading.catalog.open_table(insert.table.db or session.database, insert.table.name)
    return replace(insert, columns=tuple(table.schema().names))


def _located(source: SourceFunction) -> SourceFunction:
    """A relative path means one seen from here, now; the job must mean the same wherever it is run from."""
    uri = source.properties.get("uri", "")
    if not is_local(source) or "://" in uri or uri.startswith("/"):
        return source
    return replace(source, properties={**source.properties, "uri": f"{Path.cwd()}/{uri.removeprefix('./')}"})


def _located_names(properties: Mapping[str, str], source: SourceFunction) -> dict[str, str]:
    """Positions, and files that are asked for, are whole names; a part of one would sort before or behind them all."""
    located = dict(properties)
    if offset := properties.get("offset"):
        key = parse_offset(offset)
        if (whole := whole_name(key, source)) != key:
            located["offset"] = render_offset(whole)
    if names := read_job_properties({k: v for k, v in properties.items() if k == ALSO_LOAD}).also_load:
        wholes = [whole_name(name, source) for name in names]
        if wholes != list(names):
            located[ALSO_LOAD] = json.dumps(wholes, ensure_ascii=False)
    return located


def prepare_job_alter(session: Session, statement: AlterJob) -> Edit:
    """ALTER JOB, checked."""
    record = settled(session.lading, session.job(statement.name))
    check_paused(record, session)
    # Keys that cannot be opened any more matter only where the old source is kept.
    whole = statement_to_alter(session, record, statement.insert.source if statement.insert else None)
    old = whole.statement
    if not isinstance(old, CreateJob):
        msg = f"{record.full_name} is a routine load"
        raise JobNotFoundError(msg, left="Nothing was changed.", todo="Use the statements of routine loads.")
    properties = _located_names(statement.properties, old.insert.source)
    insert = statement.insert
    if insert is not None:
        named = replace(insert.table, db=insert.table.db if insert.table.db is not None else session.database)
        insert = _bound(session, replace(insert, table=named, source=_located(insert.source)))
    statement = replace(statement, properties=properties, insert=insert)
    if insert is not None:
        check_source(session, insert.source, old.insert.source)
    new = alter_streaming_job(old, statement, current_db=session.database)
    moves: tuple[PartitionMove, ...] = ()
    seen: Head | None = None
    if "offset" in properties:
        seen, moves = _moves(session, record, parse_offset(properties["offset"]))
    return Edit(
        record=record,
        old=old,
        new=new,
        seen=seen,
        moves=moves,
        has_lost_secrets=whole.has_lost_secrets,
        reason=statement.comment or "",
        statement=statement,
    )


def prepare_file_move(session: Session, record: JobRecord, old: CreateJob, at: str, reason: str) -> Edit:
    """A position alone: the name of the last file that counts as loaded, or `{"fileName": …}`."""
    offset = at if at.lstrip().startswith("{") or not at else render_offset(at)
    located = _located_names({"offset": offset}, old.insert.source)["offset"]
    new = replace(old, properties={**old.properties, "offset": located}) if at else old
    seen, moves = _moves(session, record, parse_offset(located))
    return Edit(record=record, old=old, new=new, seen=seen, moves=moves, reason=reason)


def _moves(session: Session, record: JobRecord, key: str) -> tuple[Head | None, tuple[PartitionMove, ...]]:
    """The head, and what a move from its position would do."""
    compiled, _ = session.lading.compile(record)
    if compiled.plan_move is None:
        msg = f"{record.full_name} does not load files"
        raise ConfigError(msg, left="Nothing was changed.", todo="Move its partitions with ALTER ROUTINE LOAD.")
    bills = session.lading.bills(record, 1)
    positions: Positions = bills[0].positions if bills else compiled.source.open(compiled.job.start)
    remark = warn_outside(key, source_of(written_statement(record)))
    return (bills[0].head if bills else None), compiled.plan_move(positions, key, remark)


def control_job(session: Session, statement: ControlJob) -> Result:
    """PAUSE, RESUME or DROP JOB."""
    try:
        record = session.job(statement.name)
    except JobNotFoundError:
        if statement.verb == "DROP" and statement.if_exists:
            return done()
        raise
    now = session.lading.clock.now()
    events: dict[str, Event] = {
        "PAUSE": PausedByUser(user=session.user, at=now),
        "RESUME": Resumed(at=now),
        "DROP": Stopped(at=now),
    }
    with session.lading.job_locks.hold(record.job_id):
        if statement.verb == "RESUME":
            finish_begun(session.lading, record)
        apply(session, record, events[statement.verb], audit(session, record, statement.verb))
        if statement.verb != "RESUME":
            session.lading.forget_runner(record.job_id)
            forget_lag(session.lading.watches, record.job_id)
        if statement.verb == "DROP":
            tell_table(session.lading.catalog, record)
    return done()
