"""Looking at a change before it is made, and taking it back; and the same for a rollback of a table."""

from __future__ import annotations

from typing import Literal

from lading.sql.statements.jobs import AcceptRollback, ExplainAlter, ExplainRoutineLoad, ShowRollback, UndoAlter
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.parse_job import parse_alter_job
from lading.sql.syntax.parse_routine import parse_alter_routine_load

_JOB = "the name of a job"


def parse_explain_routine_load(cursor: Cursor) -> ExplainRoutineLoad:
    """EXPLAIN ROUTINE LOAD [FOR] [db.]job"""
    cursor.expect("EXPLAIN", "ROUTINE", "LOAD")
    cursor.accept("FOR")
    return ExplainRoutineLoad(name=cursor.qualified_label(_JOB))


def parse_explain_alter(cursor: Cursor) -> ExplainAlter:
    """EXPLAIN ALTER JOB …, EXPLAIN ALTER ROUTINE LOAD …"""
    cursor.expect("EXPLAIN")
    read = parse_alter_job if cursor.sees("ALTER", "JOB") else parse_alter_routine_load
    return ExplainAlter(alter=read(cursor))


def parse_undo_alter(cursor: Cursor) -> UndoAlter:
    """UNDO ALTER JOB name, or UNDO ALTER ROUTINE LOAD FOR [db.]job; [COMMENT '…']"""
    cursor.expect("UNDO", "ALTER")
    kind = _kind(cursor)
    return UndoAlter(kind=kind, name=cursor.qualified_label(_JOB), comment=_comment(cursor))


def parse_show_rollback(cursor: Cursor) -> ShowRollback:
    """SHOW ROLLBACK OF JOB name, or SHOW ROLLBACK OF ROUTINE LOAD FOR [db.]job"""
    cursor.expect("SHOW", "ROLLBACK", "OF")
    kind = _kind(cursor)
    return ShowRollback(kind=kind, name=cursor.qualified_label(_JOB))


def parse_accept_rollback(cursor: Cursor) -> AcceptRollback:
    """ACCEPT ROLLBACK OF JOB name, or OF ROUTINE LOAD FOR [db.]job; KEEP POSITION or LOAD AGAIN; [COMMENT '…']"""
    cursor.expect("ACCEPT", "ROLLBACK", "OF")
    kind = _kind(cursor)
    name = cursor.qualified_label(_JOB)
    keeps_position = cursor.accept("KEEP", "POSITION")
    if not keeps_position:
        cursor.expect("LOAD", "AGAIN")
    return AcceptRollback(kind=kind, name=name, keeps_position=keeps_position, comment=_comment(cursor))


def _kind(cursor: Cursor) -> Literal["JOB", "ROUTINE LOAD"]:
    if cursor.accept("JOB"):
        return "JOB"
    cursor.expect("ROUTINE", "LOAD", "FOR")
    return "ROUTINE LOAD"


def _comment(cursor: Cursor) -> str | None:
    return cursor.string("a comment in quotes") if cursor.accept("COMMENT") else None
