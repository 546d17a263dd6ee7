"""Routine loads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from lading.deferred import deferred
from lading.errors import SqlError
from lading.sql.statements.jobs import (
    AlterRoutineLoad,
    ControlRoutineLoad,
    CreateRoutineLoad,
    ShowCreateRoutineLoad,
    ShowRoutineLoad,
    ShowRoutineLoadTask,
)
from lading.sql.statements.parts import (
    NO_CLAUSES,
    ColumnMapping,
    Expression,
    LoadClauses,
    MergeType,
    PartitionNames,
    QualifiedName,
    SourceFunction,
)
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.names import check_routine_load_name
from lading.sql.syntax.spans import Span

if TYPE_CHECKING:
    from lading.sql.expressions.dialect import parse_expression_tree
    from lading.sql.expressions.mapping import check_rowwise
else:
    parse_expression_tree = deferred("lading.sql.expressions.dialect", "parse_expression_tree")
    check_rowwise = deferred("lading.sql.expressions.mapping", "check_rowwise")

_JOB = "the name of a job"
_CLAUSES = ("COLUMNS", "PRECEDING", "WHERE", "DELETE", "ORDER", "TEMPORARY", "PARTITION", "PARTITIONS")
_STOPS = ("PROPERTIES", "FROM", "COMMENT")


def parse_create_routine_load(cursor: Cursor) -> CreateRoutineLoad:
    """CREATE ROUTINE LOAD [db.]job [ON table] [WITH …] [clauses] [PROPERTIES (…)] FROM source(…) [COMMENT '…']"""
    cursor.expect("CREATE", "ROUTINE", "LOAD")
    name = cursor.qualified_label(_JOB)
    check_routine_load_name(name.name, name.span)
    table = cursor.qualified("the name of a table") if cursor.accept("ON") else None
    merge = MergeType(cursor.choose("APPEND", "MERGE", "DELETE")) if cursor.accept("WITH") else MergeType.APPEND
    clauses = _clauses(cursor)
    properties = cursor.properties() if cursor.accept("PROPERTIES") else {}
    if not cursor.sees("FROM"):
        cursor.fail(*_open_words(clauses, properties), "FROM")
    source = _source(cursor)
    comment = cursor.string("a comment in quotes") if cursor.accept("COMMENT") else None
    return CreateRoutineLoad(
        name=name,
        table=table.name if table is not None else None,
        table_in=table if table is not None and table.db is not None else None,
        merge_type=merge,
        clauses=clauses,
        properties=properties,
        source=source,
        comment=comment,
    )


def _open_words(clauses: LoadClauses, properties: dict[str, str]) -> tuple[str, ...]:
    """What could have come instead of FROM."""
    return () if properties else ("PROPERTIES",) if clauses != NO_CLAUSES else ("a clause", "PROPERTIES")


def parse_alter_routine_load(cursor: Cursor) -> AlterRoutineLoad:
    """ALTER ROUTINE LOAD FOR [db.]job [clauses] [PROPERTIES (…)] [FROM source(…)] [COMMENT '…']"""
    cursor.expect("ALTER", "ROUTINE", "LOAD", "FOR")
    return parse_altered_routine_load(cursor, cursor.qualified_label(_JOB))


def parse_altered_routine_load(cursor: Cursor, name: QualifiedName) -> AlterRoutineLoad:
    """What stands behind the name."""
    clauses = _clauses(cursor)
    properties = cursor.properties() if cursor.accept("PROPERTIES") else {}
    source = _source(cursor) if cursor.sees("FROM") else None
    if source is None and not properties and clauses == NO_CLAUSES:
        cursor.fail("a clause", "PROPERTIES", "FROM")
    comment = cursor.string("a comment in quotes") if cursor.accept("COMMENT") else None
    return AlterRoutineLoad(name=name, clauses=clauses, properties=properties, source=source, comment=comment)


def _source(cursor: Cursor) -> SourceFunction:
    cursor.expect("FROM")
    start = cursor.token.span.start
    name = cursor.identifier("KAFKA or KINESIS").upper()
    properties = cursor.properties()
    return SourceFunction(name=name, properties=properties, span=Span(cursor.text, start, cursor.previous.span.end))


def _clauses(cursor: Cursor) -> LoadClauses:
    found = NO_CLAUSES
    if cursor.token.upper not in _CLAUSES:
        return found
    found = _clause(cursor, found)
    while cursor.accept_symbol(","):
        if cursor.token.upper not in _CLAUSES:
            cursor.fail("a clause")
        found = _clause(cursor, found)
    return found


def _clause(cursor: Cursor, found: LoadClauses) -> LoadClauses:
    start = cursor.token.span
    field, value = _read_clause(cursor)
    if getattr(found, field) is not None:
        place = Span(cursor.text, start.start, cursor.previous.span.end)
        msg = "repeat setting of clause load property: this clause was written before"
        raise SqlError(msg, place=place, hint="repeated", todo="Keep one of the two.")
    return replace(found, **{field: value})


def _read_clause(cursor: Cursor) -> tuple[str, Any]:
    forms: tuple[tuple[tuple[str, ...], str, Callable[[Cursor], Any]], ...] = (
        (("COLUMNS", "TERMINATED", "BY"), "column_separator", lambda c: c.string("a separator in quotes")),
        (("COLUMNS",), "columns", _columns),
        (("PRECEDING", "FILTER"), "preceding_filter", _condition),
        (("WHERE",), "where", _condition),
        (("DELETE", "ON"), "delete_on", _condition),
        (("ORDER", "BY"), "order_by", lambda c: c.identifier("the name of a column")),
        (("TEMPORARY", "PARTITIONS"), "partitions", lambda c: _partitions(c, True)),
        (("TEMPORARY", "PARTITION"), "partitions", lambda c: _partitions(c, True)),
        (("PARTITIONS",), "partitions", lambda c: _partitions(c, False)),
        (("PARTITION",), "partitions", lambda c: _partitions(c, False)),
    )
    for words, field, read in forms:
        if cursor.accept(*words):
            return field, read(cursor)
    second = {"PRECEDING": ("FILTER",), "DELETE": ("ON",), "ORDER": ("BY",), "TEMPORARY": ("PARTITION", "PARTITIONS")}
    first = cursor.take().upper
    raise cursor.mismatch(*second[first])


def _condition(cursor: Cursor) -> Expression:
    written = cursor.expression(_STOPS, "a condition")
    return _checked(written)


def _checked(written: Expression) -> Expression:
    from sqlglot import exp

    tree = parse_expression_tree(written.text, written.span)
    if isinstance(tree, exp.Alias):
        msg = f"mismatched input: {written.text} is not an expression"
        raise SqlError(msg, place=written.span, hint="expected one expression")
    check_rowwise(tree, written.span)
    return written


def _columns(cursor: Cursor) -> tuple[ColumnMapping, ...]:
    found: list[ColumnMapping] = []

    def read() -> None:
        if cursor.accept_symbol("("):
            found.append(_mapping(cursor))
            cursor.expect_symbol(")")
        else:
            found.append(_mapping(cursor))

    cursor.listed(read)
    return tuple(found)


def _mapping(cursor: Cursor) -> ColumnMapping:
    name = cursor.identifier("the name of a column")
    if not cursor.accept_symbol("="):
        return ColumnMapping(name=name)
    return ColumnMapping(name=name, expression=_checked(cursor.expression(())))


def _partitions(cursor: Cursor, temporary: bool) -> PartitionNames:
    names: list[str] = []

    def read() -> None:
        names.append(cursor.identifier("the name of a partition"))

    if cursor.token.is_symbol("("):
        cursor.listed(read)
    else:
        read()
    return PartitionNames(names=tuple(names), temporary=temporary)


def parse_control_routine_load(cursor: Cursor) -> ControlRoutineLoad:
    """PAUSE, RESUME or STOP ROUTINE LOAD FOR [db.]job"""
    verb = cast("Literal['PAUSE', 'RESUME', 'STOP']", cursor.choose("PAUSE", "RESUME", "STOP"))
    cursor.expect("ROUTINE", "LOAD", "FOR")
    return ControlRoutineLoad(verb=verb, name=cursor.qualified_label(_JOB))


def parse_control_all(cursor: Cursor) -> ControlRoutineLoad:
    """PAUSE or RESUME ALL ROUTINE LOAD"""
    verb = cast("Literal['PAUSE', 'RESUME']", cursor.choose("PAUSE", "RESUME"))
    cursor.expect("ALL", "ROUTINE", "LOAD")
    return ControlRoutineLoad(verb=verb, name=None)


def parse_show_routine_load(cursor: Cursor) -> ShowRoutineLoad | ShowRoutineLoadTask:
    """SHOW [ALL] ROUTINE LOAD [FOR [db.]job | LIKE 'pattern'], or SHOW ROUTINE LOAD TASK …"""
    cursor.expect("SHOW")
    everything = cursor.accept("ALL")
    cursor.expect("ROUTINE", "LOAD")
    if not everything and cursor.accept("TASK"):
        return ShowRoutineLoadTask(name=_task_job(cursor))
    if cursor.accept("FOR"):
        return ShowRoutineLoad(all=everything, name=cursor.qualified_label(_JOB))
    like = cursor.string("a pattern in quotes") if cursor.accept("LIKE") else None
    return ShowRoutineLoad(all=everything, like=like)


def _task_job(cursor: Cursor) -> QualifiedName:
    if cursor.accept("FOR"):
        return cursor.qualified_label(_JOB)
    db = cursor.identifier("the name of a database") if cursor.accept("FROM") or cursor.accept("IN") else None
    if not cursor.accept("WHERE") or cursor.token.value.upper() != "JOBNAME":
        msg = "please designate a jobName, as in WHERE JobName = 'clicks'"
        raise SqlError(msg, place=cursor.token.span, hint="expected WHERE JobName = '…'")
    cursor.take()
    cursor.expect_symbol("=")
    span = cursor.token.span
    return QualifiedName(name=cursor.string("the name of a job in quotes"), db=db, span=span)


def parse_show_create_routine_load(cursor: Cursor) -> ShowCreateRoutineLoad:
    """SHOW [ALL] CREATE ROUTINE LOAD FOR [db.]job"""
    cursor.expect("SHOW")
    everything = cursor.accept("ALL")
    cursor.expect("CREATE", "ROUTINE", "LOAD", "FOR")
    return ShowCreateRoutineLoad(name=cursor.qualified_label(_JOB), all=everything)
