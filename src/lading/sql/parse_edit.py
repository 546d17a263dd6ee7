"""Looking at a change before it is made, and taking it back."""

from __future__ import annotations

from lading.sql.cursor import Cursor
from lading.sql.parse_job import parse_alter_job
from lading.sql.parse_routine import parse_alter_routine_load
from lading.sql.statements import ExplainAlter, ExplainRoutineLoad, UndoAlter

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
    if cursor.accept("JOB"):
        undo = UndoAlter(kind="JOB", name=cursor.qualified_label(_JOB))
    else:
        cursor.expect("ROUTINE", "LOAD", "FOR")
        undo = UndoAlter(kind="ROUTINE LOAD", name=cursor.qualified_label(_JOB))
    if not cursor.accept("COMMENT"):
        return undo
    return UndoAlter(kind=undo.kind, name=undo.name, comment=cursor.string("a comment in quotes"))
