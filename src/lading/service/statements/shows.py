"""SHOW of jobs, in either dialect."""

from __future__ import annotations

from lading.jobs.dialects import ROUTINE, ROUTINE_COLUMNS, ROUTINE_TASK_COLUMNS, STREAMING
from lading.model.positions import Positions
from lading.service.edits.written import statement_of
from lading.service.result import Result, table
from lading.service.session import Session
from lading.service.statements.bound import database_of
from lading.service.statements.loads import find_job, listed, not_found, operable
from lading.service.views.loads import create_text, like_pattern, show_tasks, views_of
from lading.sql.statements.jobs import ShowCreateJob, ShowCreateRoutineLoad, ShowRoutineLoad, ShowRoutineLoadTask
from lading.sql.syntax.masking import mask
from lading.sql.syntax.render import render


def show_routine(session: Session, statement: ShowRoutineLoad) -> Result:
    """SHOW [ALL] ROUTINE LOAD, oldest first."""
    database = database_of(session, statement.name) if statement.name is not None else session.database
    records = listed(session, ROUTINE, database, include_final=statement.all)
    if statement.name is not None:
        records = [record for record in records if record.name == statement.name.name]
        if not records:
            raise not_found(session, ROUTINE, statement.name, ROUTINE.unseen)
    if statement.like is not None:
        pattern = like_pattern(statement.like)
        records = [record for record in records if pattern.fullmatch(record.name)]
    ordered = sorted(records, key=lambda record: (record.created_at, record.job_id))
    return table(ROUTINE_COLUMNS, views_of(session.lading).rows(ordered))


def show_routine_tasks(session: Session, statement: ShowRoutineLoadTask) -> Result:
    """SHOW ROUTINE LOAD TASK."""
    record = find_job(session, ROUTINE, statement.name)
    if record is None:
        raise not_found(session, ROUTINE, statement.name, ROUTINE.no_tasks)
    return table(ROUTINE_TASK_COLUMNS, show_tasks(session.lading, record))


def show_create_job(session: Session, statement: ShowCreateJob) -> Result:
    """SHOW CREATE JOB: the statement as it was written."""
    record = operable(session, STREAMING, statement.name)
    return table(("JobName", "CreateStmt"), [(record.name, render(mask(statement_of(session.lading, record))))])


def show_create_routine(session: Session, statement: ShowCreateRoutineLoad) -> Result:
    """SHOW [ALL] CREATE ROUTINE LOAD: a statement that makes a job which goes on from here."""
    everything = listed(session, ROUTINE, database_of(session, statement.name), include_final=statement.all)
    records = [record for record in everything if record.name == statement.name.name]
    if not records:
        raise not_found(session, ROUTINE, statement.name, ROUTINE.unseen)
    rows = []
    for record in records:
        bills = session.lading.bills(record, 1)
        positions = bills[0].positions if bills else Positions()
        rows.append((record.job_id, record.name, create_text(statement_of(session.lading, record), positions)))
    return table(("JobId", "JobName", "CreateStmt"), rows)


def show_services(session: Session) -> Result:
    """SHOW SERVICES: who shares the store, and which jobs each runs."""
    lading = session.lading
    names = {stored.record.job_id: str(stored.record.full_name) for stored in lading.store.list_jobs()}
    held = lading.store.list_leases()
    rows = []
    for entry in lading.store.list_services():
        jobs = sorted(
            names[job_id] for job_id, holder in held.items() if holder == entry.service_id and job_id in names
        )
        is_this = "Yes" if entry.service_id == lading.leases.service_id else "No"
        row = (
            entry.service_id,
            entry.host,
            entry.pid,
            entry.home,
            entry.started_at,
            len(jobs),
            ", ".join(jobs),
            is_this,
        )
        rows.append(row)
    return table(("ServiceId", "Host", "Pid", "Home", "StartTime", "JobNum", "Jobs", "IsThis"), rows)
