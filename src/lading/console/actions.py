"""What buttons do. Each runs the statement that a person would write, so rules and audit are the same. All block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lading.console.desk import Console, Visitor
from lading.console.statement_check import check_text
from lading.errors import ConfigError, LadingError
from lading.jobs.record import JobRecord
from lading.service import operations
from lading.service.operations import EditPlan, RollbackView
from lading.service.session import Session
from lading.sql.statements.jobs import (
    CreateJob,
    CreateRoutineLoad,
    Statement,
)
from lading.sql.statements.tables import CreateDatabase, CreateTable

Verb = Literal["PAUSE", "RESUME", "STOP"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """What came of the statements of the page for new jobs."""

    name: str = ""
    """The last job that was made, as its page is called."""
    done: tuple[str, ...] = ()
    """What was made, in order; when a statement failed, what was made before it."""
    fault: LadingError | None = None


def control(console: Console, visitor: Visitor, name: str, verb: operations.Verb) -> None:
    """PAUSE, RESUME, or the end of a job."""
    operations.control(*_job(console, visitor, name), verb)


def plan_move(console: Console, visitor: Visitor, name: str, positions: Mapping[str, str | None]) -> EditPlan:
    """What moving these partitions would do. Changes nothing."""
    return operations.plan_move(*_job(console, visitor, name), positions)


def move(
    console: Console, visitor: Visitor, name: str, positions: Mapping[str, str | None], *, seen: str, reason: str = ""
) -> EditPlan:
    """Move these partitions. Raises JobChangedError when the job is not as it was when the plan was `seen`."""
    return operations.move(*_job(console, visitor, name), positions, seen=seen, reason=reason)


def plan_undo(console: Console, visitor: Visitor, name: str) -> EditPlan:
    """What taking back the last change would do. Changes nothing."""
    return operations.plan_undo(*_job(console, visitor, name))


def undo(console: Console, visitor: Visitor, name: str, *, seen: str, reason: str = "") -> None:
    """Take back the last change, if it is the one that was `seen`. Raises JobChangedError when it is another one."""
    operations.undo(*_job(console, visitor, name), seen=seen, reason=reason)


def look_at_rollback(console: Console, visitor: Visitor, name: str) -> RollbackView:
    """What a rollback of the table took from a job. Raises JobStateError when there was none."""
    return operations.look_at_rollback(*_job(console, visitor, name))


def accept_rollback(
    console: Console, visitor: Visitor, name: str, *, keeps_position: bool, seen: str, reason: str = ""
) -> None:
    """Go on after a rollback, if it is the one that was `seen`. Raises JobChangedError when it is another one."""
    session, record = _job(console, visitor, name)
    operations.accept_rollback(session, record, keeps_position=keeps_position, seen=seen, reason=reason)


def _job(console: Console, visitor: Visitor, name: str) -> tuple[Session, JobRecord]:
    record = console.sights.record(name, visitor.may_see)
    return console.session(visitor, record.database), record


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
