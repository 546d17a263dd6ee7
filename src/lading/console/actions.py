"""What buttons do. Each runs the statement that a person would write, so rules and audit are the same. All block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lading.console.desk import Console, Visitor
from lading.console.statement_check import check_text
from lading.errors import ConfigError, LadingError
from lading.jobs.record import JobKind, JobRecord
from lading.service.edits import rollbacks
from lading.service.edits.edit import check_seen, edit_positions, plan_edit, plan_of
from lading.service.edits.fingerprint import changed_since
from lading.service.edits.plan import EditPlan
from lading.service.edits.rollbacks import RollbackView
from lading.service.edits.undo import prepare_undo
from lading.service.runtime.job_locks import turn_of
from lading.service.security.recording import Request, recorded
from lading.service.statements.routine_loads import after_change
from lading.sql.parts import QualifiedName
from lading.sql.statements import (
    AcceptRollback,
    ControlJob,
    ControlRoutineLoad,
    CreateJob,
    CreateRoutineLoad,
    Statement,
    UndoAlter,
)
from lading.sql.table_statements import CreateDatabase, CreateTable

Verb = Literal["PAUSE", "RESUME", "STOP"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """What came of the statements of the page for new jobs."""

    name: str = ""
    """The last job that was made, as its page is called."""
    done: tuple[str, ...] = ()
    """What was made, in order; when a statement failed, what was made before it."""
    fault: LadingError | None = None


def control(console: Console, visitor: Visitor, name: str, verb: Verb) -> None:
    """PAUSE, RESUME, or the end of a job: DROP JOB, STOP ROUTINE LOAD."""
    record = console.sights.record(name, visitor.may_see)
    statement: Statement = ControlJob(verb="DROP" if verb == "STOP" else verb, name=record.name)
    if record.kind is JobKind.ROUTINE:
        statement = ControlRoutineLoad(verb=verb, name=QualifiedName(name=record.name, db=record.database))
    console.session(visitor, record.database).execute(statement)


def plan_move(console: Console, visitor: Visitor, name: str, positions: Mapping[str, str | None]) -> EditPlan:
    """What moving these partitions would do. Changes nothing."""
    record = console.sights.record(name, visitor.may_see)
    return plan_edit(console.session(visitor, record.database), name, positions)


def move(
    console: Console, visitor: Visitor, name: str, positions: Mapping[str, str | None], *, seen: str, reason: str = ""
) -> EditPlan:
    """Move these partitions. Raises JobChangedError when the job is not as it was when the plan was `seen`."""
    record = console.sights.record(name, visitor.may_see)
    session = console.session(visitor, record.database)
    with recorded(session, Request.to_move(name, positions)):
        plan = edit_positions(session, name, positions, reason=reason, seen=seen)
    after_change(session, record)
    console.lading.changed()
    return plan


def plan_undo(console: Console, visitor: Visitor, name: str) -> EditPlan:
    """What taking back the last change would do. Changes nothing."""
    record = console.sights.record(name, visitor.may_see)
    return plan_of(prepare_undo(console.session(visitor, record.database), record))


def undo(console: Console, visitor: Visitor, name: str, *, seen: str, reason: str = "") -> None:
    """Take back the last change, if it is the one that was `seen`. Raises JobChangedError when it is another one."""
    job_id = console.sights.record(name, visitor.may_see).job_id
    with turn_of(console.lading, job_id):
        record = console.sights.record(name, visitor.may_see)
        session = console.session(visitor, record.database)
        check_seen(prepare_undo(session, record), seen)
        session.execute(_undo(record, reason))


def _undo(record: JobRecord, reason: str) -> UndoAlter:
    is_routine = record.kind is JobKind.ROUTINE
    return UndoAlter(
        kind="ROUTINE LOAD" if is_routine else "JOB",
        name=QualifiedName(name=record.name, db=record.database if is_routine else None),
        comment=reason or None,
    )


def look_at_rollback(console: Console, visitor: Visitor, name: str) -> RollbackView:
    """What a rollback of the table took from a job. Raises JobStateError when there was none."""
    record = console.sights.record(name, visitor.may_see)
    return rollbacks.look_at(console.session(visitor, record.database), record)


def accept_rollback(
    console: Console, visitor: Visitor, name: str, *, keeps_position: bool, seen: str, reason: str = ""
) -> None:
    """Go on after a rollback, if it is the one that was `seen`. Raises JobChangedError when it is another one."""
    job_id = console.sights.record(name, visitor.may_see).job_id
    with turn_of(console.lading, job_id):
        record = console.sights.record(name, visitor.may_see)
        session = console.session(visitor, record.database)
        if rollbacks.look_at(session, record).seen != seen:
            raise changed_since(record, "or its table was changed since this was shown", "Look again.")
        is_routine = record.kind is JobKind.ROUTINE
        session.execute(
            AcceptRollback(
                kind="ROUTINE LOAD" if is_routine else "JOB",
                name=QualifiedName(name=record.name, db=record.database if is_routine else None),
                keeps_position=keeps_position,
                comment=reason or None,
            )
        )


def create(console: Console, visitor: Visitor, text: str, database: str) -> Created:
    """Run the statements of the page for new jobs, up to the first that fails."""
    session = console.session(visitor)
    session.form_check(text)
    checked = check_text(text, database=database)
    if checked.mistake is not None or not checked.jobs:
        msg = checked.mistake.message if checked.mistake else "The text is empty"
        raise ConfigError(msg, left="Nothing was changed.", todo=checked.mistake.todo if checked.mistake else "")
    session.use(database or "default")
    done: list[str] = []
    for statement in session.parse(text):
        try:
            session.execute(statement)
        except LadingError as error:
            return Created(done=tuple(done), fault=error)
        if made := _made(statement):
            done.append(made)
    return Created(name=checked.jobs[-1].name, done=tuple(done))


def _made(statement: Statement) -> str:
    match statement:
        case CreateDatabase():
            return f"database {statement.name}"
        case CreateTable():
            return f"table {statement.name}"
        case CreateJob() | CreateRoutineLoad():
            return f"job {statement.name}"
    return ""
