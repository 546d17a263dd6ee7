"""What buttons do. Each runs the statement that a person would write, so rules and audit are the same. All block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lading.console.desk import Console, Visitor
from lading.console.statement_check import check_text
from lading.errors import ConfigError, LadingError
from lading.jobs.record import JobRecord
from lading.service import operations
from lading.service.operations import EditPlan, RollbackView
from lading.service.result import Result
from lading.service.session import Session
from lading.service.views.build import redacted
from lading.sql.statements.jobs import (
    CreateJob,
    CreateRoutineLoad,
    ExplainAlter,
    Statement,
)
from lading.sql.statements.tables import CreateDatabase, CreateTable

_ALTER_SECRETS = (
    "Its source has keys, which are shown to nobody. They stay as they are; writing the source again needs them."
)
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


def control_all(
    console: Console, visitor: Visitor, names: Sequence[str], verb: operations.Verb
) -> tuple[list[str], list[str]]:
    """PAUSE or RESUME of several jobs: those that it was done for, and why not for the others."""
    done: list[str] = []
    refused: list[str] = []
    for name in names:
        try:
            control(console, visitor, name, verb)
        except LadingError as error:
            refused.append(redacted(str(error)))
        else:
            done.append(name)
    return done, refused


def allow_bad_rows(console: Console, visitor: Visitor, name: str, properties: Mapping[str, str], *, why: str) -> None:
    """Let bad rows pass, and go on."""
    operations.allow_bad_rows(*_job(console, visitor, name), properties, reason=why)


def skip_file(console: Console, visitor: Visitor, name: str, file: str, *, why: str) -> None:
    """Leave one file out, and go on."""
    operations.skip_file(*_job(console, visitor, name), file, reason=why)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EditDraft:
    """A text to begin with."""

    text: str = ""
    remark: str = ""
    database: str = "default"


def edit_draft(console: Console, visitor: Visitor, name: str) -> EditDraft:
    """The ALTER that would leave a job as it is, for somebody to change. No secret is in it."""
    session, record = _job(console, visitor, name)
    remark = _ALTER_SECRETS if operations.has_keys(session, record) else ""
    return EditDraft(text=operations.alter_text(session, record), remark=remark)


def copy_draft(console: Console, visitor: Visitor, name: str) -> EditDraft:
    """The statement of a job under another name. No secret is in it."""
    session, record = _job(console, visitor, name)
    remark = f"A copy of {name}. Give it a name, and choose what it loads and where."
    if operations.has_keys(session, record):
        remark += " Its keys are not copied: write them into the properties of its source."
    return EditDraft(text=operations.copy_text(session, record), remark=remark, database=record.database)


def explain_edit(console: Console, visitor: Visitor, name: str, text: str) -> Result:
    """What an ALTER of this job would change. Changes nothing."""
    session, record = _job(console, visitor, name)
    return session.execute(ExplainAlter(alter=operations.alter_of(session, record, text)))


def apply_edit(console: Console, visitor: Visitor, name: str, text: str) -> None:
    """Alter this job."""
    session, record = _job(console, visitor, name)
    session.execute(operations.alter_of(session, record, text))


def _made(statement: Statement) -> str:
    match statement:
        case CreateDatabase():
            return f"database {statement.name}"
        case CreateTable():
            return f"table {statement.name}"
        case CreateJob() | CreateRoutineLoad():
            return f"job {statement.name}"
    return ""
