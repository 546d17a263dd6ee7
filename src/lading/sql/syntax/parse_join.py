"""[INNER | LEFT] JOIN table AS alias ON condition, in the SELECT of a streaming job."""

from __future__ import annotations

from lading.errors import NotSupportedError, SqlError
from lading.sql.expressions.dialect import parse_expression_tree
from lading.sql.expressions.mapping import check_rowwise
from lading.sql.statements.parts import TableJoin
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.tokens import Kind

_STOPS = (
    "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "SORT", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT",
    "MINUS", "JOIN", "INNER", "CROSS", "FULL", "NATURAL", "LATERAL",
)  # fmt: skip
_OTHERS = ("RIGHT", "FULL", "CROSS", "NATURAL", "LATERAL", "ASOF", "SEMI", "ANTI")
_TODO = "Join with a table of this service: FROM S3(…) AS s [LEFT] JOIN db.table AS d ON s.k = d.k."


def parse_join(cursor: Cursor, source_alias: str | None) -> TableJoin | None:
    """The join that comes next; None when none does."""
    start = cursor.token.span
    for word in _OTHERS:
        if cursor.sees(word) and any(cursor.look(ahead).upper == "JOIN" for ahead in (1, 2)):
            msg = f"Only support one source in insert streaming job: a {word} JOIN is not possible"
            raise NotSupportedError(msg, place=start, hint="not possible here", todo=_TODO)
    is_left = cursor.accept("LEFT", "OUTER", "JOIN") or cursor.accept("LEFT", "JOIN")
    if not is_left and not cursor.accept("INNER", "JOIN") and not cursor.accept("JOIN"):
        return None
    if cursor.token.is_symbol("("):
        msg = "A job cannot join with a subquery"
        raise NotSupportedError(msg, place=cursor.token.span, hint="a subquery", todo=_TODO)
    table = cursor.qualified("table")
    if cursor.token.is_symbol("("):
        msg = f"A join of two streams is not supported: {table} is a source, and not a table"
        raise NotSupportedError(msg, place=table.span, hint="a second stream", todo=_TODO)
    alias = _alias(cursor) or table.name
    if source_alias is None or source_alias.lower() == alias.lower():
        msg = "In a join, the source and the table have names of their own: FROM S3(…) AS s JOIN db.table AS d"
        raise SqlError(
            msg, place=start, hint="two names needed", todo="Name both with AS, and write s.column, d.column."
        )
    if any("." in name or "`" in name for name in (source_alias, alias)):
        msg = "The names of the sides of a join cannot have dots or quotes in them"
        raise SqlError(msg, place=table.span, hint="another name needed")
    if cursor.sees("USING"):
        msg = "JOIN … USING is not supported"
        raise NotSupportedError(msg, place=cursor.token.span, hint="not supported", todo="Write ON s.k = d.k.")
    cursor.expect("ON")
    on = cursor.expression(_STOPS, "a condition")
    check_rowwise(parse_expression_tree(on.text, on.span), on.span)
    if cursor.sees("LEFT") or cursor.sees("RIGHT") or cursor.sees("INNER") or cursor.sees("JOIN"):
        msg = "A job joins its source with one table"
        raise NotSupportedError(msg, place=cursor.token.span, hint="a second join", todo=_TODO)
    return TableJoin(table=table, alias=alias, on=on, is_left=is_left)


def _alias(cursor: Cursor) -> str | None:
    if cursor.accept("AS"):
        return cursor.identifier("an alias")
    is_name = cursor.token.kind is Kind.QUOTED or (
        cursor.token.kind is Kind.WORD and cursor.token.upper not in ("ON", "USING", *_STOPS)
    )
    return cursor.identifier("an alias") if is_name else None
