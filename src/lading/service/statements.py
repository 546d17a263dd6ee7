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
from lading.service.facade import Lading
from lading.service.queries import run_query
from lading.service.result import Result, done, table
from lading.service.runner import offset_of
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


def execute(lading: Lading, statement: Statement) -> Result:
    """Run one statement."""
    match statement:
        case CreateJob():
            return _create_job(lading, statement)
        case AlterJob():
            return _alter_job(lading, statement)
        case ControlJob():
            return _control_job(lading, statement)
        case ShowCreateJob():
            shown = mask(lading.statement_of(lading.job(statement.name.name)))
            return table(("JobName", "CreateStmt"), [(statement.name.name, render(shown))])
        case ExplainJob():
            return _explain(lading, statement)
        case ShowLoad():
            return _show_load(lading, statement)
        case Query():
            return run_query(lading, statement)
        case _:
            return _catalog(lading, statement)


def _catalog(lading: Lading, statement: Statement) -> Result:
    match statement:
        case CreateTable():
            lading.shelf.create_table(statement, _database(lading, statement.name))
        case DropTable():
            database = _database(lading, statement.name)
            _refuse_used(lading, f"{database}.{statement.name.name}")
            lading.shelf.drop_table(statement.name, database, if_exists=statement.if_exists)
        case CreateDatabase():
            lading.shelf.create_database(statement.name, if_not_exists=statement.if_not_exists)
        case DropDatabase():
            if not (statement.if_exists and not lading.shelf.has_database(statement.name)):
                lading.store.drop_database(statement.name)
        case UseDatabase():
            lading.shelf.require_database(statement.name)
            lading.database = statement.name
        case ShowDatabases():
            return table(("Database",), [(entry.name,) for entry in lading.store.list_databases()])
        case ShowTables():
            database = statement.db or lading.database
            lading.shelf.require_database(database)
            names = [entry.name for entry in lading.store.list_tables(database)]
            return table((f"Tables_in_{database}",), [(name,) for name in names])
        case DescribeTable():
            schema = lading.shelf.open_table(_database(lading, statement.name), statement.name.name).schema()
            rows = [(field.name, spark_type(field.type), "Yes" if field.nullable else "No") for field in schema]
            return table(("Field", "Type", "Null"), rows)
        case _:
            msg = f"{type(statement).__name__} is not supported yet"
            raise NotSupportedError(msg, todo="Streaming jobs from files are.")
    return done()


def _database(lading: Lading, name: QualifiedName) -> str:
    return name.db if name.db is not None else lading.database


def _refuse_used(lading: Lading, target: str) -> None:
    users = [stored.record.name for stored in lading.store.list_jobs() if stored.record.target == target]
    if users:
        msg = f"Table {target} is loaded by {', '.join(users)}"
        raise ConfigError(msg, left="It was not touched.", todo="Drop those jobs first.")


def _create_job(lading: Lading, statement: CreateJob) -> Result:
    definition = define_streaming_job(statement)
    if lading.store.find_job(JobName(kind=JobKind.STREAMING, name=statement.name)) is not None:
        msg = f"job name exist: {statement.name}"
        raise JobExistsError(msg, left="It was not touched.", todo="Choose another name, or drop it first.")
    target = f"{_database(lading, definition.table)}.{definition.table.name}"
    qualified = replace(definition.table, db=target.partition(".")[0])
    insert = replace(statement.insert, table=qualified, source=_located(statement.insert.source))
    properties = _located_offset(statement.properties, insert.source)
    statement = replace(statement, insert=insert, properties=properties)
    kept = without_secrets(statement)
    event = Created(
        job_id=new_job_id(),
        name=statement.name,
        database=lading.database,
        kind=JobKind.STREAMING,
        definition=render(kept),
        target=target,
        properties=dict(kept.properties),
        comment=statement.comment or "",
        user=lading.user,
        at=lading.clock.now(),
    )
    record, _ = create_record(event)
    # Dies after this: secrets of a job that does not exist, which nobody reads.
    lading.keep_secrets(record.job_id, statement, kept)
    lading.compile(record)  # Everything is checked against the table and the files before the job exists.
    lading.store.create_job(record, audit=_audit(lading, record, "CREATE"))
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


def _alter_job(lading: Lading, statement: AlterJob) -> Result:
    record = lading.job(statement.name)
    event = Altered(at=lading.clock.now())
    if record.state is not JobState.PAUSED:
        _apply(lading, record, event, "ALTER")
    old = lading.statement_of(record)
    properties = _located_offset(statement.properties, old.insert.source)
    insert = statement.insert and replace(statement.insert, source=_located(statement.insert.source))
    statement = replace(statement, properties=properties, insert=insert)
    new = alter_streaming_job(old, statement, current_db=lading.database)
    kept = without_secrets(new)
    event = replace(event, definition=render(kept), properties=dict(kept.properties))
    changed = replace(record, definition=event.definition or "", properties=dict(kept.properties))
    lading.keep_secrets(record.job_id, new, kept)
    try:
        lading.compile(changed)
    except Exception:
        lading.keep_secrets(record.job_id, old, without_secrets(old))
        raise
    if "offset" in statement.properties:
        event = _move(lading, record, event, statement.properties["offset"])
    _apply(lading, record, event, "ALTER")
    return done(f"job {record.name} altered; it stays PAUSED")


def _move(lading: Lading, record: JobRecord, event: Altered, offset: str) -> Altered:
    """Move the position: a commit of the table, before the record says so."""
    from lading.commit.steps import run_steps

    at = parse_offset(offset)
    lading.forget_runner(record.job_id)
    coordinator, partition = lading.coordinator(record)
    bill = run_steps(coordinator.edit({partition: at}, reason=f"ALTER JOB by {lading.user}"))
    return replace(event, moved=bill.head, current_offset=offset_of(bill.positions))


def _control_job(lading: Lading, statement: ControlJob) -> Result:
    try:
        record = lading.job(statement.name)
    except JobNotFoundError:
        if statement.verb == "DROP" and statement.if_exists:
            return done()
        raise
    now = lading.clock.now()
    events: dict[str, Event] = {
        "PAUSE": PausedByUser(user=lading.user, at=now),
        "RESUME": Resumed(at=now),
        "DROP": Stopped(at=now),
    }
    _apply(lading, record, events[statement.verb], statement.verb)
    if statement.verb != "RESUME":
        lading.runner(record.job_id).halt()
        lading.forget_runner(record.job_id)
    return done()


def _apply(lading: Lading, record: JobRecord, event: Event, action: str) -> None:
    lading.runner(record.job_id).apply(event)
    lading.store.append_audit(_audit(lading, record, action))


def _audit(lading: Lading, record: JobRecord, action: str) -> AuditEntry:
    return AuditEntry(
        at=lading.clock.now(), user=lading.user, action=action, job_id=JobId(record.job_id), subject=record.name
    )


def _explain(lading: Lading, statement: ExplainJob) -> Result:
    record = lading.job(statement.name.name)
    compiled, target = lading.compile(record)
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


def _show_load(lading: Lading, statement: ShowLoad) -> Result:
    record = lading.job(statement.name.name, include_final=True)
    if statement.what == "AUDIT":
        entries = lading.store.list_audit(job_id=record.job_id)
        rows = [(str(e.at), e.user, e.action, e.subject, json.dumps(dict(e.facts))) for e in entries]
        return table(("Time", "User", "Action", "Subject", "Facts"), rows)
    bills = lading.bills(record, statement.limit or DEFAULT_ERRORS)
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
