"""Statements that look into a load, of whichever kind: EXPLAIN, SHOW LOAD ERRORS, GAPS and AUDIT."""

from __future__ import annotations

from itertools import islice

from lading.errors import JobNotFoundError
from lading.jobs.record import JobKind, JobRecord
from lading.service.edits.edit import facts_text
from lading.service.result import Result, table
from lading.service.session import Session
from lading.service.statements.routine_loads import find_routine
from lading.service.views.error_rows import read_error_rows
from lading.sql.statements.jobs import ShowLoad
from lading.sql.statements.parts import QualifiedName

DEFAULT_ERRORS = 100


def find_any(session: Session, name: QualifiedName, *, include_final: bool = False) -> JobRecord:
    """The job of a name: a streaming job, or else a routine load of that or of the current database."""
    try:
        if name.db is None:
            return session.job(name.name, include_final=include_final)
    except JobNotFoundError:
        record = find_routine(session, name, include_final=include_final)
        if record is None:
            raise
        return record
    record = find_routine(session, name, include_final=include_final)
    if record is None:
        msg = f"There is no job named {name.name} in db {name.db}"
        raise JobNotFoundError(msg, left="Nothing was changed.", todo="See SHOW ALL ROUTINE LOAD.", name=str(name))
    return record


def explain_job(session: Session, record: JobRecord) -> Result:
    """How a job is run."""
    compiled, target = session.lading.compile(record)
    compiled.close()
    limits = compiled.job.limits
    size = f"{limits.files} files, {limits.size_bytes} bytes"
    if record.kind is JobKind.ROUTINE:
        size = f"{limits.rows} rows, {limits.size_bytes} bytes, {limits.seconds:g} seconds"
    lines = [
        ("path", "general: Arrow in, Spark SQL, Arrow out, one stage"),
        ("target", f"{record.target} at {target.location}"),
        ("limits", size),
    ]
    if compiled.stage is not None:
        mapping = compiled.stage.mapping
        lines += [(f"column {c.name}", f"{c.expression or 'NULL'} → {c.type}") for c in mapping.columns]
        lines.append(("where", mapping.where or "true"))
        lines.append(("source columns", ", ".join(compiled.stage.source.names)))
    else:
        lines.append(("source columns", "not known yet: there is no file"))
    return table(("What", "How"), lines)


def show_load(session: Session, statement: ShowLoad) -> Result:
    """SHOW LOAD ERRORS, GAPS or AUDIT."""
    record = find_any(session, statement.name, include_final=True)
    if statement.what == "AUDIT":
        entries = session.lading.store.list_audit(job_id=record.job_id)
        rows = [(str(e.at), e.user, e.action, e.subject, facts_text(e.facts)) for e in entries]
        return table(("Time", "User", "Action", "Subject", "Facts"), rows)
    limit = statement.limit or DEFAULT_ERRORS
    if statement.what == "GAPS":
        bills = session.lading.bills(record, limit)
        gaps = [(g.partition, g.start, g.end, g.reason, str(g.at)) for bill in bills for g in bill.gaps]
        return table(("Partition", "From", "To", "Reason", "Time"), gaps)
    bad = islice(read_error_rows(session.lading, record), limit)
    return table(("Seq", "File", "Row", "Reason", "Raw"), [(e.seq, e.file, e.row, e.reason, e.raw) for e in bad])
