"""Streaming jobs, queries and the statements that look into a load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from lading.deferred import deferred
from lading.errors import NotSupportedError, SqlError
from lading.sql.statements.jobs import AlterJob, ControlJob, CreateJob, ExplainJob, Query, ShowCreateJob, ShowLoad
from lading.sql.statements.parts import InsertSelect, SourceFunction
from lading.sql.statements.tables import CreateTable, LookAt
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.names import check_job_name
from lading.sql.syntax.parse_select import parse_insert, parse_source
from lading.sql.syntax.parse_table import parse_create_table
from lading.sql.syntax.spans import Span
from lading.sql.syntax.tokens import Kind

if TYPE_CHECKING:
    from sqlglot import exp

    from lading.sql.expressions.dialect import parse_query_tree
else:
    parse_query_tree = deferred("lading.sql.expressions.dialect", "parse_query_tree")


_NO_SCHEDULE = (
    "Write ON STREAMING: a job loads what comes, all the time. To load what is there and end, "
    "run it with `lading run`, at the times of your own scheduler."
)


def parse_create_job(cursor: Cursor) -> CreateJob:
    """CREATE JOB name [PROPERTIES (…)] ON STREAMING [COMMENT '…'] DO INSERT …"""
    cursor.expect("CREATE", "JOB")
    name = _new_name(cursor)
    if not (cursor.sees("PROPERTIES") or cursor.sees("ON")):
        cursor.fail("PROPERTIES", "ON")
    properties = cursor.properties() if cursor.accept("PROPERTIES") else {}
    cursor.expect("ON")
    if not cursor.accept("STREAMING"):
        cursor.fail("STREAMING", todo=_NO_SCHEDULE)
    comment = cursor.string("a comment in quotes") if cursor.accept("COMMENT") else None
    _refuse_cdc(cursor)
    cursor.expect("DO")
    made = parse_create_table(cursor, may_lack_columns=True) if cursor.sees("CREATE", "TABLE") else None
    span = cursor.token.span
    insert = parse_insert(cursor)
    if made is not None:
        _check_made(made, insert, span)
    return CreateJob(name=name, properties=properties, comment=comment, insert=insert, creates=made)


def _check_made(made: CreateTable, insert: InsertSelect, span: Span) -> None:
    if str(made.name) != str(insert.table):
        msg = f"The job makes the table {made.name} and loads into {insert.table}"
        raise SqlError(msg, place=span, hint="expected the same table")
    if not made.if_not_exists:
        msg = "A job makes its table only when it is not there"
        raise SqlError(msg, place=span, hint="expected CREATE TABLE IF NOT EXISTS")


def parse_alter_job(cursor: Cursor) -> AlterJob:
    """ALTER JOB name [PROPERTIES (…)] [COMMENT '…'] [INSERT …]"""
    cursor.expect("ALTER", "JOB")
    return parse_altered_job(cursor, cursor.label("the name of a job"))


def parse_altered_job(cursor: Cursor, name: str) -> AlterJob:
    """What stands behind the name."""
    if not any(cursor.sees(word) for word in ("PROPERTIES", "INSERT", "FROM", "COMMENT")):
        cursor.fail("PROPERTIES", "INSERT")
    properties = cursor.properties() if cursor.accept("PROPERTIES") else {}
    _refuse_cdc(cursor)
    comment = cursor.string("a comment in quotes") if cursor.accept("COMMENT") else None
    insert = parse_insert(cursor) if cursor.sees("INSERT") else None
    return AlterJob(name=name, properties=properties, comment=comment, insert=insert)


def _new_name(cursor: Cursor) -> str:
    span = cursor.token.span
    name = cursor.label("the name of a job")
    check_job_name(name, span)
    return name


def _refuse_cdc(cursor: Cursor) -> None:
    if cursor.sees("FROM"):
        msg = "Loading from the change log of a database is not supported"
        raise NotSupportedError(msg, place=cursor.token.span, hint="not supported", todo="Load from S3, FILE or KAFKA.")


def parse_control_job(cursor: Cursor) -> ControlJob:
    """PAUSE, RESUME or DROP JOB name, or WHERE jobName = '…' as in Doris"""
    verb = cast("Literal['PAUSE', 'RESUME', 'DROP']", cursor.choose("PAUSE", "RESUME", "DROP"))
    cursor.expect("JOB")
    if_exists = verb == "DROP" and cursor.accept("IF", "EXISTS")
    if not cursor.accept("WHERE"):
        return ControlJob(
            verb=verb, name=cursor.label("the name of a job, or WHERE jobName = '…'"), if_exists=if_exists
        )
    if cursor.token.value.upper() != "JOBNAME":
        cursor.fail("jobName")
    cursor.take()
    cursor.expect_symbol("=")
    return ControlJob(verb=verb, name=cursor.string("the name of a job in quotes"), if_exists=if_exists)


def parse_show_create_job(cursor: Cursor) -> ShowCreateJob:
    """SHOW CREATE JOB [FOR] name"""
    cursor.expect("SHOW", "CREATE", "JOB")
    cursor.accept("FOR")
    return ShowCreateJob(name=cursor.qualified_label("the name of a job"))


def parse_explain_job(cursor: Cursor) -> ExplainJob:
    """EXPLAIN JOB name"""
    cursor.expect("EXPLAIN", "JOB")
    return ExplainJob(name=cursor.qualified_label("the name of a job"))


def parse_show_load(cursor: Cursor) -> ShowLoad:
    """SHOW LOAD ERRORS, GAPS or AUDIT FOR job [LIMIT n]"""
    cursor.expect("SHOW", "LOAD")
    what = cast("Literal['ERRORS', 'GAPS', 'AUDIT']", cursor.choose("ERRORS", "GAPS", "AUDIT"))
    cursor.expect("FOR")
    name = cursor.qualified_label("the name of a job")
    limited = what == "ERRORS" and cursor.accept("LIMIT")
    return ShowLoad(what=what, name=name, limit=cursor.number("a number") if limited else None)


def parse_show_jobs(cursor: Cursor) -> Query:
    """SHOW JOBS: short for SELECT * FROM jobs("type" = "insert")"""
    cursor.expect("SHOW", "JOBS")
    function = SourceFunction(name="JOBS", properties={"type": "insert"})
    return Query(text='SELECT * FROM jobs("type" = "insert")', functions=(function,))


_SOURCES = ("S3", "FILE", "KAFKA", "KINESIS")


def _is_look(cursor: Cursor) -> bool:
    words = [cursor.look(at) for at in range(5)]
    is_star = words[0].upper == "SELECT" and words[1].is_symbol("*") and words[2].upper == "FROM"
    return is_star and words[3].upper in _SOURCES and words[4].is_symbol("(")


def _parse_look(cursor: Cursor) -> LookAt:
    cursor.expect("SELECT")
    cursor.expect_symbol("*")
    cursor.expect("FROM")
    source = parse_source(cursor)
    if cursor.token.upper in ("WHERE", "GROUP", "ORDER", "JOIN", "LEFT"):
        raise _more_than_a_look(cursor.token.span)
    return LookAt(source=source, limit=cursor.number("a number of rows") if cursor.accept("LIMIT") else 10)


def _more_than_a_look(place: Span) -> NotSupportedError:
    msg = "A look at a source shows the first rows as they are"
    todo = "Write SELECT * FROM FILE(…) LIMIT 10. A job chooses columns and rows: CREATE JOB … INSERT INTO t SELECT …."
    return NotSupportedError(msg, place=place, hint="not possible here", todo=todo)


def _refuse_choice(cursor: Cursor) -> None:
    """SELECT id FROM FILE(…), and whatever else asks for more than a look."""
    at = 1
    while cursor.look(at).kind is not Kind.END and not cursor.look(at).is_symbol(";"):
        is_source = cursor.look(at).upper in _SOURCES and cursor.look(at + 1).is_symbol("(")
        if is_source and cursor.look(at - 1).upper == "FROM":
            raise _more_than_a_look(cursor.look(1).span)
        at += 1


def parse_query(cursor: Cursor) -> Query | LookAt:
    """SELECT …, or SELECT * FROM source(…) [LIMIT n]"""
    if _is_look(cursor):
        return _parse_look(cursor)
    _refuse_choice(cursor)
    from sqlglot import exp

    span = cursor.rest()
    text = span.text[span.start : span.end]
    tree = parse_query_tree(text, span)
    if not isinstance(tree, exp.Query):
        msg = "mismatched input: this is not a query"
        raise SqlError(msg, place=span, hint="expected a query")
    calls = [table.this for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Anonymous)]
    return Query(text=text, functions=tuple(_function(call) for call in calls))


def _function(call: exp.Anonymous) -> SourceFunction:
    from sqlglot import exp

    properties = {_content(pair.left): _content(pair.right) for pair in call.expressions if isinstance(pair, exp.EQ)}
    return SourceFunction(name=call.name.upper(), properties=properties)


def _content(part: exp.Expr) -> str:
    return part.name or part.sql(dialect="doris")
