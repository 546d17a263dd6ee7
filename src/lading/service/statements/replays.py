"""REPLAY ERRORS, and looking at what it would take up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lading.errors import JobNotFoundError, JobStateError
from lading.jobs.record import JobRecord
from lading.service.edits.replays import look, replay
from lading.service.result import Result, done, table
from lading.service.statements.loads import find_any
from lading.service.views.loads import after_change

if TYPE_CHECKING:
    from lading.service.session import Session
    from lading.sql.statements.jobs import ExplainReplay, ReplayErrors
    from lading.sql.statements.parts import QualifiedName


def replay_errors(session: Session, statement: ReplayErrors) -> Result:
    """Load the rows of quarantine again."""
    record = _running(session, statement.name)
    bill, looked_at = replay(session, record, statement)
    if bill is None:
        if not looked_at:
            return done(f"job {record.full_name} has no bad rows that wait; nothing was changed")
        why = "they are still bad, or what is kept of them does not say enough (docs/files.md)"
        told = f"none of the {looked_at} bad rows of job {record.full_name} can be loaded: {why}; nothing was changed"
        return done(told)
    after_change(session, record)
    rows = bill.tally.rows
    what, done_to = ("bad row", "was") if rows.loaded == 1 else ("bad rows", "were")
    told = f"{rows.loaded} {what} of job {record.full_name} {done_to} loaded in commit {bill.seq}"
    told += f", left out by its filter: {rows.unselected}" if rows.unselected else ""
    told += f", still bad: {rows.error}; the first: {bill.first_error}" if rows.error else ""
    return done(f"{told}. It stays PAUSED")


def _running(session: Session, name: QualifiedName) -> JobRecord:
    """The job. One that has ended has bad rows and takes none up: nobody is told that it is not there."""
    try:
        return find_any(session, name)
    except JobNotFoundError:
        ended = find_any(session, name, include_final=True)
    msg = f"Job {ended.full_name} is {ended.state.value}: a job that has ended loads nothing any more"
    todo = f"SHOW LOAD ERRORS FOR {ended.full_name} shows its bad rows; put them, corrected, into a file of another "
    todo += (
        "folder, and load that by another job. A job that does not end (CONTINUOUS, not ONCE) can take them up itself."
    )
    raise JobStateError(msg, left="Nothing was changed.", todo=todo, job_id=ended.job_id)


def explain_replay(session: Session, statement: ExplainReplay) -> Result:
    """The commits whose bad rows wait, oldest first."""
    asked = statement.replay
    record = _running(session, asked.name)
    waiting = look(session, record, asked.after)
    rows = [
        (bill.seq, str(bill.billed_at), bill.tally.rows.error, len(bill.quarantine), bill.first_error)
        for bill in waiting.bills
    ]
    return table(("Seq", "Time", "Rows", "Files", "First"), rows)
