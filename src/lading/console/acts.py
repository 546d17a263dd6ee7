"""What buttons do. Each runs the statement that a person would write, so rules and audit are the same. All block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from lading.console.checking import check_text
from lading.console.desk import Console, Visitor
from lading.errors import ConfigError
from lading.jobs.record import JobKind, JobRecord
from lading.service.edits import edit_positions, plan_edit, plan_of, prepare_undo
from lading.service.moves import EditPlan
from lading.service.routine import after_change
from lading.sql.parts import QualifiedName
from lading.sql.statements import ControlJob, ControlRoutineLoad, Statement, UndoAlter

Verb = Literal["PAUSE", "RESUME"]


def control(console: Console, visitor: Visitor, name: str, verb: Verb) -> None:
    """PAUSE or RESUME."""
    record = console.sights.record(name, visitor.may_see)
    statement: Statement = ControlJob(verb=verb, name=record.name)
    if record.kind is JobKind.ROUTINE:
        statement = ControlRoutineLoad(verb=verb, name=QualifiedName(name=record.name, db=record.database))
    console.session(visitor, record.database).execute(statement)


def plan_move(console: Console, visitor: Visitor, name: str, positions: Mapping[str, str | None]) -> EditPlan:
    """What moving these partitions would do. Changes nothing."""
    record = console.sights.record(name, visitor.may_see)
    return plan_edit(console.session(visitor, record.database), name, positions)


def move(
    console: Console, visitor: Visitor, name: str, positions: Mapping[str, str | None], *, reason: str = ""
) -> EditPlan:
    """Move these partitions."""
    record = console.sights.record(name, visitor.may_see)
    session = console.session(visitor, record.database)
    plan = edit_positions(session, name, positions, reason=reason)
    after_change(session, record)
    console.lading.changed()
    return plan


def plan_undo(console: Console, visitor: Visitor, name: str) -> EditPlan:
    """What taking back the last change would do. Changes nothing."""
    record = console.sights.record(name, visitor.may_see)
    return plan_of(prepare_undo(console.session(visitor, record.database), record))


def undo(console: Console, visitor: Visitor, name: str, *, reason: str = "") -> None:
    """Take back the last change."""
    record = console.sights.record(name, visitor.may_see)
    console.session(visitor, record.database).execute(_undo(record, reason))


def _undo(record: JobRecord, reason: str) -> UndoAlter:
    is_routine = record.kind is JobKind.ROUTINE
    return UndoAlter(
        kind="ROUTINE LOAD" if is_routine else "JOB",
        name=QualifiedName(name=record.name, db=record.database if is_routine else None),
        comment=reason or None,
    )


def create(console: Console, visitor: Visitor, text: str, database: str) -> str:
    """Run the statements of the page for new jobs; the name of the last job they made."""
    checked = check_text(text, database=database)
    if checked.mistake is not None or not checked.jobs:
        msg = checked.mistake.message if checked.mistake else "The text is empty"
        raise ConfigError(msg, left="Nothing was changed.", todo=checked.mistake.todo if checked.mistake else "")
    session = console.session(visitor)
    session.use(database or "default")
    session.sql(text)
    return checked.jobs[-1].name
