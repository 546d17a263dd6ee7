"""The INSERT … SELECT of a streaming job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lading.deferred import deferred
from lading.errors import NotSupportedError, SqlError
from lading.model.load import SourceSpec
from lading.model.pairs import is_pair, paired
from lading.sql.statements.parts import (
    Expression,
    InsertSelect,
    SelectItem,
    SourceFunction,
    StreamJoin,
    TableJoin,
)
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.parse_join import parse_join
from lading.sql.syntax.spans import Span
from lading.sql.syntax.tokens import Kind, tokenize

if TYPE_CHECKING:
    from lading.sql.expressions.dialect import parse_expression_tree
    from lading.sql.expressions.mapping import check_rowwise
else:
    parse_expression_tree = deferred("lading.sql.expressions.dialect", "parse_expression_tree")
    check_rowwise = deferred("lading.sql.expressions.mapping", "check_rowwise")

ONE_SOURCE = "Only support one source in insert streaming job"
_REFUSED = {
    "JOIN": "a join",
    "INNER": "a join",
    "LEFT": "a join",
    "RIGHT": "a join",
    "FULL": "a join",
    "CROSS": "a join",
    "NATURAL": "a join",
    "LATERAL": "LATERAL",
    "GROUP": "GROUP BY",
    "HAVING": "HAVING without GROUP BY",
    "QUALIFY": "QUALIFY",
    "WINDOW": "WINDOW",
    "ORDER": "ORDER BY",
    "SORT": "SORT BY",
    "LIMIT": "LIMIT",
    "OFFSET": "OFFSET",
    "UNION": "UNION",
    "INTERSECT": "INTERSECT",
    "EXCEPT": "EXCEPT",
    "MINUS": "MINUS",
}
_EXPLODE = "Write explode(lines).sku in the SELECT, for a part of each element of the array lines."
_TODO = "A streaming job maps every row by itself; do this when you read the table."


def parse_insert(cursor: Cursor) -> InsertSelect:
    """INSERT INTO t [(columns)] [BY NAME] SELECT … FROM source(…) [WHERE …]"""
    cursor.expect("INSERT", "INTO")
    cursor.accept("TABLE")
    table = cursor.qualified("table")
    columns = _target_columns(cursor)
    by_name = cursor.accept("BY", "NAME")
    _refuse(cursor, "WITH", "a common table expression")
    cursor.expect("SELECT")
    _refuse(cursor, "DISTINCT", "DISTINCT")
    cursor.accept("ALL")
    items = [_item(cursor)]
    while cursor.accept_symbol(","):
        items.append(_item(cursor))
    cursor.expect("FROM")
    source = parse_source(cursor)
    alias = _alias(cursor)
    joined = parse_join(cursor, alias)
    if not cursor.sees("GROUP"):
        _only_source(cursor)
    where = _where(cursor) if cursor.accept("WHERE") else None
    group_by, having = _groups(cursor)
    if by_name and (group_by or joined is not None):
        msg = "BY NAME is not possible with a join or GROUP BY"
        raise NotSupportedError(
            msg, place=table.span, hint="this INSERT", todo="Name the columns: INSERT INTO t (a, b)."
        )
    _only_source(cursor)
    for item in () if group_by else items:
        if not item.is_star:
            check_rowwise(parse_expression_tree(item.expression.text, item.expression.span), item.expression.span)
    insert = InsertSelect(
        table=table,
        columns=columns,
        by_name=by_name,
        items=tuple(items),
        source=source,
        source_alias=alias,
        where=where,
        group_by=group_by,
        having=having,
    )
    return insert if joined is None else _with_join(insert, *joined)


def _with_join(insert: InsertSelect, join: TableJoin | StreamJoin, stream: SourceFunction | None) -> InsertSelect:
    if isinstance(join, TableJoin) or stream is None:
        return replace(insert, join=join) if isinstance(join, TableJoin) else insert
    first = insert.source
    both = paired(*(SourceSpec(kind=each.name, properties=each.properties) for each in (first, stream)))
    span = Span(first.span.text, first.span.start, stream.span.end)
    return replace(
        insert,
        source=SourceFunction(name=both.kind, properties=both.properties, span=span),
        stream_join=replace(join, spans=(first.span, stream.span)),
    )


def _groups(cursor: Cursor) -> tuple[tuple[Expression, ...], Expression | None]:
    """GROUP BY window(…), k [HAVING …]"""
    if not cursor.accept("GROUP"):
        return (), None
    cursor.expect("BY")
    stops = _REFUSED.keys() - {"LEFT", "RIGHT", "WINDOW"}
    found = [cursor.expression(stops, "a key")]
    while cursor.accept_symbol(","):
        found.append(cursor.expression(stops, "a key"))
    return tuple(found), cursor.expression(stops, "a condition") if cursor.accept("HAVING") else None


def _target_columns(cursor: Cursor) -> tuple[str, ...]:
    names: list[str] = []

    def read() -> None:
        span = cursor.token.span
        name = cursor.identifier("the name of a column")
        if name.lower() in (known.lower() for known in names):
            msg = f"Column {name} is named twice"
            raise SqlError(msg, place=span, hint="named before")
        names.append(name)

    if cursor.token.is_symbol("("):
        cursor.listed(read)
    return tuple(names)


def _item(cursor: Cursor) -> SelectItem:
    from sqlglot import exp

    written = cursor.expression(("FROM", "WHERE"), "a column")
    tree = parse_expression_tree(written.text, written.span)
    if isinstance(tree, exp.Alias):
        return SelectItem(expression=_without_alias(written), alias=tree.alias)
    return SelectItem(expression=written)


def _without_alias(written: Expression) -> Expression:
    """Cut the alias, and AS when it is there, off the end."""
    tokens = [token for token in tokenize(written.text) if token.kind is not Kind.END][:-1]
    if tokens[-1].upper == "AS":
        tokens = tokens[:-1]
    end = tokens[-1].span.end
    return Expression(text=written.text[:end], span=written.span.inner(0, end))


def parse_source(cursor: Cursor) -> SourceFunction:
    """S3(…), FILE(…), KAFKA(…), KINESIS(…)"""
    start = cursor.token.span
    if cursor.token.is_symbol("("):
        msg = f"{ONE_SOURCE}: a subquery cannot be loaded from"
        raise NotSupportedError(msg, place=start, hint="a subquery", todo=_TODO)
    name = cursor.qualified("source")
    if not cursor.token.is_symbol("(") or name.db is not None or is_pair(name.name):
        msg = f"{ONE_SOURCE}, and it must be a source with properties, not {name}"
        raise NotSupportedError(msg, place=name.span, hint="expected a source such as S3(…)")
    if cursor.look(1).kind is Kind.STRING and cursor.look(2).is_symbol(")"):
        msg = f"{name.name.upper()}(…) takes properties, each with its name"
        written = cursor.text[cursor.look(1).span.start : cursor.look(1).span.end]
        raise SqlError(msg, place=cursor.look(1).span, hint=f'expected "uri" = {written}')
    properties = cursor.properties()
    span = Span(cursor.text, start.start, cursor.previous.span.end)
    lowered = {key.lower(): value for key, value in properties.items()}
    return SourceFunction(name=name.name.upper(), properties=lowered, span=span)


def _alias(cursor: Cursor) -> str | None:
    if cursor.accept("AS"):
        return cursor.identifier("an alias")
    is_name = cursor.token.kind is Kind.QUOTED or (
        cursor.token.kind is Kind.WORD and cursor.token.upper not in _REFUSED and cursor.token.upper != "WHERE"
    )
    return cursor.identifier("an alias") if is_name else None


def _where(cursor: Cursor) -> Expression:
    written = cursor.expression(_REFUSED.keys() - {"LEFT", "RIGHT"}, "a condition")
    check_rowwise(parse_expression_tree(written.text, written.span), written.span)
    return written


def _only_source(cursor: Cursor) -> None:
    """Refuse what would join or combine rows."""
    if cursor.token.is_symbol(","):
        raise NotSupportedError(ONE_SOURCE, place=cursor.look(1).span, hint="a second source", todo=_TODO)
    if what := _REFUSED.get(cursor.token.upper):
        fragment = f"{ONE_SOURCE}: {what} is not possible" if what in ("a join", "UNION", "LATERAL") else ""
        msg = fragment or f"{what} is not possible in a streaming job"
        todo = _EXPLODE if what == "LATERAL" else _TODO
        raise NotSupportedError(msg, place=cursor.token.span, hint="not possible here", todo=todo)


def _refuse(cursor: Cursor, word: str, what: str) -> None:
    if cursor.sees(word):
        msg = f"{what} is not possible in a streaming job"
        raise NotSupportedError(msg, place=cursor.token.span, hint="not possible here", todo=_TODO)
