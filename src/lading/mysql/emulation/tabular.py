"""Small tables in memory, asked with SQL: the answers to SHOW and the tables of information_schema."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from lading.mysql.emulation.constants import NotConstantError, Surroundings, value_of
from lading.mysql.protocol.errors import Fault, syntax
from lading.service.limits.sqlite_sandbox import SmallTables, quoted
from lading.service.result import Result
from lading.sql.syntax.tokens import Kind, quote_string, tokenize

_UNKNOWN_TABLE = re.compile(r"no such table: (?P<name>\S+)")
_UNKNOWN_COLUMN = re.compile(r"no such column: (?P<name>\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns and rows. Text is compared without regard to capitals, as MySQL does."""

    columns: Sequence[str]
    rows: Iterable[Sequence[Any]] = ()

    @property
    def result(self) -> Result:
        return Result(columns=tuple(self.columns), rows=tuple(tuple(row) for row in self.rows))


def ask(tables: Mapping[str, Table], schema: str, tree: exp.Expr, around: Surroundings) -> Result:
    """The answer to a query of MySQL's SQL over tables of one schema."""
    text = without_lone_having(tree).transform(lambda node: _known(node, around)).sql(dialect="sqlite", comments=False)
    with SmallTables() as small:
        try:
            small.attach(schema)
            for name, table in tables.items():
                small.fill(f"{quoted(schema)}.{quoted(name)}", table.columns, table.rows)
            return small.ask(text)
        except sqlite3.Error as error:
            raise _fault(str(error)) from error


def narrowed(table: Table, like: str | None, where: str | None, around: Surroundings) -> Result:
    """The rows that LIKE (of the first column) and WHERE of a SHOW leave."""
    condition = (
        _quoted(where, table)
        if where is not None
        else f"`{table.columns[0]}` LIKE {quote_string(like or '%', chr(39))}"
    )
    tree = parse_mysql(f"SELECT * FROM shown.shown WHERE {condition}")  # noqa: S608 - asked of what is shown only
    return ask({"shown": table}, "shown", tree, around)


def _quoted(where: str, table: Table) -> str:
    """A condition with its columns in quotes: some of them are words of SQL."""
    known = {column.lower() for column in table.columns}
    parts: list[str] = []
    start = 0
    for token in tokenize(where):
        if token.kind is Kind.WORD and token.value.lower() in known:
            parts += [where[start : token.span.start], f"`{token.value}`"]
            start = token.span.end
    return "".join([*parts, where[start:]])


def parse_mysql(text: str) -> exp.Expr:
    """A query of MySQL's SQL."""
    try:
        return parse_one(text, dialect="mysql")
    except (SqlglotError, RecursionError) as error:
        msg = f"The query cannot be read: {str(error).splitlines()[0]}"
        raise syntax(msg) from error


def _known(node: exp.Expr, around: Surroundings) -> exp.Expr:
    """Put values in the place of what only the connection knows, and leave out what SQLite does not need."""
    if isinstance(node, exp.Collate):
        return node.left
    if isinstance(node, exp.Like) and node.expression.is_string:
        return exp.Escape(this=node, expression=exp.Literal.string("\\"))
    if isinstance(node, exp.SessionParameter | exp.Parameter | exp.Func) and not isinstance(node, exp.Cast):
        try:
            return exp.convert(value_of(node, around))
        except (NotConstantError, ValueError):
            return node
    return node


def _fault(said: str) -> Fault:
    if found := _UNKNOWN_TABLE.search(said):
        return Fault(1146, "42S02", f"Table '{found['name']}' doesn't exist")
    if found := _UNKNOWN_COLUMN.search(said):
        return Fault(1054, "42S22", f"Unknown column '{found['name']}'")
    return Fault(1235, "42000", f"The query cannot be answered: {said}")


def without_lone_having(tree: exp.Expr) -> exp.Expr:
    """The same query in words that other databases know."""
    return tree.transform(_settled)


def _settled(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Select) or node.args.get("having") is None or node.args.get("group") is not None:
        return node
    if any(node.find_all(exp.AggFunc)):
        return node
    named = {item.alias.lower(): item.this for item in node.selects if isinstance(item, exp.Alias)}

    def meant(part: exp.Expr) -> exp.Expr:
        found = named.get(part.name.lower()) if isinstance(part, exp.Column) and not part.table else None
        return exp.paren(found.copy()) if found is not None else part

    settled = node.copy()
    condition = settled.args["having"].this.transform(meant)
    settled.set("having", None)
    return settled.where(condition)
