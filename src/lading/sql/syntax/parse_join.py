"""[INNER | LEFT] JOIN, with a table or with a second stream, in the SELECT of a streaming job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lading.deferred import deferred
from lading.errors import NotSupportedError, SqlError
from lading.model.pairs import is_pair
from lading.sql.statements.parts import QualifiedName, SourceFunction, StreamJoin, TableJoin
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.spans import Span
from lading.sql.syntax.tokens import Kind

if TYPE_CHECKING:
    from lading.sql.expressions.dialect import parse_expression_tree
    from lading.sql.expressions.mapping import check_rowwise
else:
    parse_expression_tree = deferred("lading.sql.expressions.dialect", "parse_expression_tree")
    check_rowwise = deferred("lading.sql.expressions.mapping", "check_rowwise")

_STOPS = (
    "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "SORT", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT",
    "MINUS", "JOIN", "INNER", "CROSS", "FULL", "NATURAL", "LATERAL",
)  # fmt: skip
_OTHERS = ("RIGHT", "FULL", "CROSS", "NATURAL", "LATERAL", "ASOF", "SEMI", "ANTI")
_TODO = "Join with a table of this service: FROM S3(…) AS s [LEFT] JOIN db.table AS d ON s.k = d.k."
_STREAMS = (
    "Join two streams as FROM KAFKA(…) AS a [LEFT] JOIN KAFKA(…) AS b ON a.k = b.k AND b.ts BETWEEN a.ts AND "
    "a.ts + INTERVAL 10 MINUTES."
)


def parse_join(cursor: Cursor, source_alias: str | None) -> tuple[TableJoin | StreamJoin, SourceFunction | None] | None:
    """The join that comes next, and the second stream where it is with one; None when none comes."""
    start = cursor.token.span
    for word in _OTHERS:
        if cursor.sees(word) and any(cursor.look(ahead).upper == "JOIN" for ahead in (1, 2)):
            msg = f"Only support one source in insert streaming job: a {word} JOIN is not possible"
            swapped = "Swap the sides and write LEFT JOIN. " if word == "RIGHT" else ""
            raise NotSupportedError(msg, place=start, hint="not possible here", todo=f"{swapped}{_TODO} {_STREAMS}")
    is_left = cursor.accept("LEFT", "OUTER", "JOIN") or cursor.accept("LEFT", "JOIN")
    if not is_left and not cursor.accept("INNER", "JOIN") and not cursor.accept("JOIN"):
        return None
    if cursor.token.is_symbol("("):
        msg = "A job cannot join with a subquery"
        raise NotSupportedError(msg, place=cursor.token.span, hint="a subquery", todo=_TODO)
    table = cursor.qualified("table")
    stream = _stream(cursor, table)
    alias = _alias(cursor) or (table.name if stream is None else "")
    _check_names(source_alias, alias, start, table.span, is_stream=stream is not None)
    if cursor.sees("USING"):
        msg = "JOIN … USING is not supported"
        raise NotSupportedError(msg, place=cursor.token.span, hint="not supported", todo="Write ON s.k = d.k.")
    cursor.expect("ON")
    on = cursor.expression(_STOPS, "a condition")
    check_rowwise(parse_expression_tree(on.text, on.span), on.span)
    if cursor.sees("LEFT") or cursor.sees("RIGHT") or cursor.sees("INNER") or cursor.sees("JOIN"):
        msg = "A job joins its source with one table, or with one other stream"
        todo = _TODO if stream is None else f"{_STREAMS} A second job can join what this one writes."
        raise NotSupportedError(msg, place=cursor.token.span, hint="a second join", todo=todo)
    if stream is None:
        return TableJoin(table=table, alias=alias, on=on, is_left=is_left), None
    return StreamJoin(alias=alias, on=on, is_left=is_left), stream


def _stream(cursor: Cursor, name: QualifiedName) -> SourceFunction | None:
    """A second source, with its properties; None: what is joined with is a table."""
    if not cursor.token.is_symbol("("):
        return None
    if name.db is not None or is_pair(name.name):
        msg = f"{name} is no source"
        raise NotSupportedError(msg, place=name.span, hint="unknown source", todo=_STREAMS)
    properties = {key.lower(): value for key, value in cursor.properties().items()}
    span = Span(cursor.text, name.span.start, cursor.previous.span.end)
    return SourceFunction(name=name.name.upper(), properties=properties, span=span)


def _check_names(source_alias: str | None, alias: str, start: Span, place: Span, *, is_stream: bool) -> None:
    if not alias or source_alias is None or source_alias.lower() == alias.lower():
        msg = "In a join, the source and the table have names of their own: FROM S3(…) AS s JOIN db.table AS d"
        if is_stream:
            msg = "In a join, both streams have names of their own: FROM KAFKA(…) AS a JOIN KAFKA(…) AS b"
        sides = ("a", "b") if is_stream else ("s", "d")
        todo = f"Name both with AS, and write {sides[0]}.column, {sides[1]}.column."
        raise SqlError(msg, place=start, hint="two names needed", todo=todo)
    if any("." in name or "`" in name for name in (source_alias, alias)):
        msg = "The names of the sides of a join cannot have dots or quotes in them"
        raise SqlError(msg, place=place, hint="another name needed")


def _alias(cursor: Cursor) -> str | None:
    if cursor.accept("AS"):
        return cursor.identifier("an alias")
    is_name = cursor.token.kind is Kind.QUOTED or (
        cursor.token.kind is Kind.WORD and cursor.token.upper not in ("ON", "USING", *_STOPS)
    )
    return cursor.identifier("an alias") if is_name else None
