"""What each statement does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lading.errors import ConfigError, JobExistsError, JobNotFoundError, NotSupportedError
from lading.ids import JobId, new_job_id
from lading.jobs.events import Altered, Created, Event, PausedByUser, Resumed, Stopped
from lading.jobs.record import JobKind, JobName, JobRecord, JobState
from lading.jobs.transition import create_record
from lading.pipeline.quarantine import read_quarantine
from lading.service.queries import run_query
from lading.service.result import Result, done, table
from lading.service.session import Session
from lading.sources.files.source import parse_offset
from lading.sql.alter import alter_streaming_job
from lading.sql.definitions import define_streaming_job
from lading.sql.masking import mask, without_secrets
from lading.sql.parts import QualifiedName, SourceFunction
from lading.sql.render import render
from lading.sql.statements import (
    AlterJob,
    ControlJob,
    CreateJob,
    ExplainJob,
    Query,
    ShowCreateJob,
    ShowLoad,
    Statement,
)
from lading.sql.table_statements import (
    CreateDatabase,
    CreateTable,
    DescribeTable,
    DropDatabase,
    DropTable,
    ShowDatabases,
    ShowTables,
    UseDatabase,
)
from lading.store.records import AuditEntry
from lading.tables.types import spark_type

DEFAULT_ERRORS = 100


def execute(session: Session, statement: Statement) -> Result:
    """Run one statement."""
    match statement:
        case CreateJob():
            return _create_job(session, statement)
        case AlterJob():
            return _alter_job(session, statement)
        case ControlJob():
            return _control_job(session, statement)
        case ShowCreateJob():
            shown = mask(session.lading.statement_of(session.lading.job(statement.name.name)))
            return table(("JobName", "CreateStmt"), [(statement.name.name, render(shown))])
        case ExplainJob():
            return _explain(session, statement)
        case ShowLoad():
            return _show_load(session, statement)
        case Query():
            return run_query(session, statement)
        case _:
            return _catalog(session, statement)


def _catalog(session: Session, statement: Statement) -> Result:
    match statement:
        case CreateTable():
            session.lading.shelf.create_table(statement, _database(session, statement.name))
        case DropTable():
            database = _database(session, statement.name)
            _refuse_used(session, f"{database}.{statement.name.name}")
            session.lading.shelf.drop_table(statement.name, database, if_exists=statement.if_exists)
        case CreateDatabase():
            session.lading.shelf.create_database(statement.name, if_not_exists=statement.if_not_exists)
        case DropDatabase():
            if not (statement.if_exists and not session.lading.shelf.has_database(statement.name)):
                session.lading.store.drop_database(statement.name)
        case UseDatabase():
            session.lading.shelf.require_database(statement.name)
            session.database = statement.name
        case ShowDatabases():
            return table(("Database",), [(entry.name,) for entry in session.lading.store.list_databases()])
        case ShowTables():
            database = statement.db or session.database
            session.lading.shelf.require_database(database)
            names = [entry.name for entry in session.lading.store.list_tables(database)]
            return table((f"Tables_in_{database}",), [(name,) for name in names])
        case DescribeTable():
            schema = session.lading.shelf.open_table(_database(session, statement.name), statement.name.name).schema()
            rows = [(field.name, spark_type(field.type), "Yes" if field.nullable else "No") for field in schema]
            return table(("Field", "Type", "Null"), rows)
        case _:
            msg = f"{type(statement).__name__} is not supported yet"
            raise NotSupportedError(msg, todo="Streaming jobs from files are.")
    return done()


def _database(session: Session, name: QualifiedName) -> str:
    return name.db if name.db is not None else session.database


def _refuse_used(session: Session, target: str) -> None:
    users = [stored.record.name for stored in session.lading.store.list_jobs() if stored.record.target == target]
    if users:
        msg = f"Table {target} is loaded by {', '.join(users)}"
        raise ConfigError(msg, left="It was not touched.", todo="Drop those jobs first.")


def _create_job(session: Session, statement: CreateJob) -> Result:
    definition = define_streaming_job(statement)
    if session.lading.store.find_job(JobName(kind=JobKind.STREAMING, name=statement.name)) is not None:
        msg = f"job name exist: {statement.name}"
        raise JobExistsError(msg, left="It was not touched.", todo="Choose another name, or drop it first.")
    target = f"{_database(session, definition.table)}.{definition.table.name}"
    qualified = replace(definition.table, db=target.partition(".")[0])
    insert = replace(statement.insert, table=qualified, source=_located(statement.insert.source))
    properties = _located_offset(statement.properties, insert.source)
    statement = replace(statement, insert=insert, properties=properties)
    kept = without_secrets(statement)
    event = Created(
        job_id=new_job_id(),
        name=statement.name,
        database=session.database,
        kind=JobKind.STREAMING,
        definition=render(kept),
        target=target,
        properties=dict(kept.properties),
        comment=statement.comment or "",
        user=session.user,
        at=session.lading.clock.now(),
    )
    record, _ = create_record(event)
    # Dies after this: secrets of a job that does not exist, which nobody reads.
    session.lading.keep_secrets(record.job_id, statement, kept)
    session.lading.compile(record)  # Everything is checked against the table and the files before the job exists.
    session.lading.store.create_job(record, audit=_audit(session, record, "CREATE"))
    return done(f"job {statement.name} created")


def _located(source: SourceFunction) -> SourceFunction:
    """A relative path means one seen from here, now; the job must mean the same wherever it is run from."""
    uri = source.properties.get("uri", "")
    if source.name != "FILE" or "://" in uri or uri.startswith("/"):
        return source
    return replace(source, properties={**source.properties, "uri": str(Path.cwd() / uri.removeprefix("./"))})


def _located_offset(properties: Mapping[str, str], source: SourceFunction) -> dict[str, str]:
    """The names of local files are whole paths; a relative one in an offset would sort behind them all."""
    offset = properties.get("offset")
    if not offset or source.name != "FILE":
        return dict(properties)
    key = parse_offset(offset)
    whole = key if key.startswith("/") else str(Path.cwd() / key.removeprefix("./"))
    return {**properties, "offset": json.dumps({"fileName": whole})}


def _alter_job(session: Session, statement: AlterJob) -> Result:
    record = session.lading.job(statement.name)
    event = Altered(at=session.lading.clock.now())
    if record.state is not JobState.PAUSED:
        _apply(session, record, event, "ALTER")
    old = session.lading.streaming_statement(record)
    properties = _located_offset(statement.properties, old.insert.source)
    insert = statement.insert and replace(statement.insert, source=_located(statement.insert.source))
    statement = replace(statement, properties=properties, insert=insert)
    new = alter_streaming_job(old, statement, current_db=session.database)
    kept = without_secrets(new)
    event = replace(event, definition=render(kept), properties=dict(kept.properties))
    changed = replace(record, definition=event.definition or "", properties=dict(kept.properties))
    session.lading.keep_secrets(record.job_id, new, kept)
    try:
        session.lading.compile(changed)
    except Exception:
        session.lading.keep_secrets(record.job_id, old, without_secrets(old))
        raise
    if "offset" in statement.properties:
        event = _move(session, record, event, statement.properties["offset"])
    _apply(session, record, event, "ALTER")
    return done(f"job {record.name} altered; it stays PAUSED")


def _move(session: Session, record: JobRecord, event: Altered, offset: str) -> Altered:
    """Move the position: a commit of the table, before the record says so."""
    from lading.commit.steps import run_steps

    at = parse_offset(offset)
    session.lading.forget_runner(record.job_id)
    coordinator, compiled = session.lading.coordinator(record)
    partitions = compiled.source.list_partitions().partitions
    bill = run_steps(coordinator.edit(dict.fromkeys(partitions, at), reason=f"ALTER JOB by {session.user}"))
    return replace(event, moved=bill.head, current_offset=compiled.show_position(bill.positions))


def _control_job(session: Session, statement: ControlJob) -> Result:
    try:
        record = session.lading.job(statement.name)
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
    _apply(session, record, events[statement.verb], statement.verb)
    if statement.verb != "RESUME":
        session.lading.runner(record.job_id).halt()
        session.lading.forget_runner(record.job_id)
    return done()


def _apply(session: Session, record: JobRecord, event: Event, action: str) -> None:
    session.lading.runner(record.job_id).apply(event)
    session.lading.store.append_audit(_audit(session, record, action))


def _audit(session: Session, record: JobRecord, action: str) -> AuditEntry:
    return AuditEntry(
        at=session.lading.clock.now(),
        user=session.user,
        action=action,
        job_id=JobId(record.job_id),
        subject=record.name,
    )


def _explain(session: Session, statement: ExplainJob) -> Result:
    record = session.lading.job(statement.name.name)
    compiled, target = session.lading.compile(record)
    lines = [
        ("path", "general: Arrow in, Spark SQL, Arrow out, one stage"),
        ("target", f"{record.target} at {target.location}"),
        ("limits", f"{compiled.job.limits.files} files, {compiled.job.limits.size_bytes} bytes"),
    ]
    if compiled.stage is not None:
        mapping = compiled.stage.mapping
        lines += [(f"column {c.name}", f"{c.expression or 'NULL'} → {c.type}") for c in mapping.columns]
        lines.append(("where", mapping.where or "true"))
        lines.append(("source columns", ", ".join(compiled.stage.source.names)))
    else:
        lines.append(("source columns", "not known yet: there is no file"))
    return table(("What", "How"), lines)


def _show_load(session: Session, statement: ShowLoad) -> Result:
    record = session.lading.job(statement.name.name, include_final=True)
    if statement.what == "AUDIT":
        entries = session.lading.store.list_audit(job_id=record.job_id)
        rows = [(str(e.at), e.user, e.action, e.subject, json.dumps(dict(e.facts))) for e in entries]
        return table(("Time", "User", "Action", "Subject", "Facts"), rows)
    bills = session.lading.bills(record, statement.limit or DEFAULT_ERRORS)
    if statement.what == "GAPS":
        gaps = [(g.partition, g.start, g.end, g.reason, str(g.at)) for bill in bills for g in bill.gaps]
        return table(("Partition", "From", "To", "Reason", "Time"), gaps)
    limit = statement.limit or DEFAULT_ERRORS
    found: list[tuple[object, ...]] = []
    for bill in bills:
        for row in read_quarantine(list(bill.quarantine)):
            if len(found) < limit:
                found.append((bill.seq, row["file"], row["row"], row["reason"], row["raw"]))
    return table(("Seq", "File", "Row", "Reason", "Raw"), found)
