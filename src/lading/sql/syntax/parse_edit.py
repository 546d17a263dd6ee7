"""Looking at a change before it is made, and taking it back; and the same for a rollback of a table."""

from __future__ import annotations

from typing import Literal

from lading.sql.statements.jobs import (
    AcceptRollback,
    AlterJob,
    AlterRoutineLoad,
    ExplainAlter,
    ExplainCreate,
    ExplainReplay,
    ExplainRoutineLoad,
    ReplayErrors,
    ShowRollback,
    UndoAlter,
)
from lading.sql.statements.parts import QualifiedName
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.parse_job import parse_alter_job, parse_altered_job, parse_create_job
from lading.sql.syntax.parse_routine import (
    parse_alter_routine_load,
    parse_altered_routine_load,
    parse_create_routine_load,
)

_JOB = "the name of a job"


def parse_explain_routine_load(cursor: Cursor) -> ExplainRoutineLoad:
    """EXPLAIN ROUTINE LOAD [FOR] [db.]job"""
    cursor.expect("EXPLAIN", "ROUTINE", "LOAD")
    cursor.accept("FOR")
    return ExplainRoutineLoad(name=cursor.qualified_label(_JOB))


def parse_file_word(cursor: Cursor) -> AlterJob:
    """SKIP FILE 'name' FOR JOB job, LOAD FILE 'name' FOR JOB job; [COMMENT '…']: short for ALTER JOB PROPERTIES"""
    word = cursor.choose("SKIP", "LOAD")
    cursor.expect("FILE")
    name = cursor.string("the name of a file in quotes")
    cursor.expect("FOR", "JOB")
    return AlterJob(
        name=cursor.label("the name of a job"), properties={f"file.{word.lower()}": name}, comment=_comment(cursor)
    )


def parse_explain_alter(cursor: Cursor) -> ExplainAlter:
    """EXPLAIN ALTER JOB …, EXPLAIN ALTER ROUTINE LOAD …, EXPLAIN SKIP FILE …, EXPLAIN LOAD FILE …"""
    cursor.expect("EXPLAIN")
    if not cursor.sees("ALTER"):
        return ExplainAlter(alter=parse_file_word(cursor))
    read = parse_alter_job if cursor.sees("ALTER", "JOB") else parse_alter_routine_load
    return ExplainAlter(alter=read(cursor))


def parse_explain_create(cursor: Cursor) -> ExplainCreate:
    """EXPLAIN CREATE JOB …, EXPLAIN CREATE ROUTINE LOAD …"""
    cursor.expect("EXPLAIN")
    read = parse_create_job if cursor.sees("CREATE", "JOB") else parse_create_routine_load
    return ExplainCreate(create=read(cursor))


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
    return _accepted(cursor, kind, cursor.qualified_label(_JOB))


def parse_replay_errors(cursor: Cursor) -> ReplayErrors:
    """REPLAY ERRORS FOR [db.]job [AFTER n] [COMMENT '…']"""
    cursor.expect("REPLAY", "ERRORS", "FOR")
    name = cursor.qualified_label(_JOB)
    after = cursor.number("the seq of a commit") if cursor.accept("AFTER") else None
    return ReplayErrors(name=name, after=after, comment=_comment(cursor))


def parse_explain_replay(cursor: Cursor) -> ExplainReplay:
    """EXPLAIN REPLAY ERRORS FOR …"""
    cursor.expect("EXPLAIN")
    return ExplainReplay(replay=parse_replay_errors(cursor))


def parse_alter_job_or_accept(cursor: Cursor) -> AlterJob | AcceptRollback:
    """ALTER JOB name …, or ALTER JOB name ACCEPT ROLLBACK and the choice"""
    cursor.expect("ALTER", "JOB")
    name = cursor.label("the name of a job")
    if cursor.accept("ACCEPT", "ROLLBACK"):
        return _accepted(cursor, "JOB", QualifiedName(name=name))
    return parse_altered_job(cursor, name)


def parse_alter_routine_load_or_accept(cursor: Cursor) -> AlterRoutineLoad | AcceptRollback:
    """ALTER ROUTINE LOAD FOR [db.]job …, or … ACCEPT ROLLBACK and the choice"""
    cursor.expect("ALTER", "ROUTINE", "LOAD", "FOR")
    name = cursor.qualified_label(_JOB)
    if cursor.accept("ACCEPT", "ROLLBACK"):
        return _accepted(cursor, "ROUTINE LOAD", name)
    return parse_altered_routine_load(cursor, name)


def _accepted(cursor: Cursor, kind: Literal["JOB", "ROUTINE LOAD"], name: QualifiedName) -> AcceptRollback:
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
