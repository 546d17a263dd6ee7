"""What the pages of tables and of SQL ask. All of it blocks, and runs with the rights of the visitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lading.console.completion import Known
from lading.console.desk import Console, Visitor
from lading.errors import ConfigError, LadingError, TableNotFoundError
from lading.model.names import INTERNAL, is_external, split_key
from lading.service.limits.statement_size import why_too_large
from lading.service.result import Result
from lading.service.views import tables
from lading.service.views.build import redacted
from lading.service.views.tables import TableChange, TableView
from lading.sql.statements.compaction import ShowCompaction
from lading.sql.statements.parts import QualifiedName, SourceFunction
from lading.sql.statements.tables import DescribeTable, LookAt
from lading.sql.statements.users import CreateToken, DropToken, ShowTokens, TokenLimits, TokenScope

MOST_ROWS = 1_000
PREVIEW_ROWS = 10
MOST_LETTERS = 4 * 1024 * 1024
"""Of one answer: a browser shows no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What one statement answered, as much of it as a page shows."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    message: str
    is_cut: bool


def run_sql(console: Console, visitor: Visitor, text: str, database: str, answers: list[Answered]) -> None:
    """Run statements, one after the other, up to the first that fails; `answers` gets what was answered before."""
    if why := why_too_large(text):
        msg = f"The statements of {len(text):,} characters are too large: {why}"
        raise ConfigError(msg, left="Nothing was changed.", todo="Send fewer at a time.")
    session = console.session(visitor)
    session.use(database)
    for statement in session.parse(text):
        answers.append(_shown(session.execute(statement)))  # noqa: PERF401 - what was answered before a failure stays


def _shown(result: Result) -> Answered:
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in islice(result.rows, MOST_ROWS):
        rows.append(row)
        size += sum(len(value) if isinstance(value, str | bytes) else 16 for value in row)
        if size > MOST_LETTERS:
            break
    is_cut = len(result.rows) > len(rows)
    return Answered(columns=result.columns, rows=rows, message=result.message, is_cut=is_cut)


def list_tables(console: Console, visitor: Visitor) -> list[TableView]:
    """The tables that a visitor may see."""
    return tables.list_tables(console.lading, visitor.may_see_table, visitor.may_see)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePage:
    """One table."""

    table: TableView
    full_name: QualifiedName
    columns: Result
    partitions: Result | None
    """Files by partition; None when they cannot be read."""
    fault: str
    """Why they cannot."""
    history: Sequence[TableChange]

    def total(self, column: str) -> int | None:
        """The sum over all partitions."""
        return None if self.partitions is None else sum(int(row[column] or 0) for row in self.partitions.dicts())


def look_at_table(console: Console, visitor: Visitor, name: str) -> TablePage:
    """A table by its whole name. Raises TableNotFoundError when it is not there for this visitor, LadingError when it
    cannot be read.
    """
    found, full = _seen_table(console, visitor, name)
    session = console.session(visitor)
    columns = session.execute(DescribeTable(name=full))
    partitions, fault = None, ""
    try:
        partitions = session.execute(ShowCompaction(table=full))
    except LadingError as error:
        fault = redacted(error.what)
    history = tables.table_history(console.lading, found, visitor.may_see)
    return TablePage(
        table=found,
        full_name=full,
        columns=columns,
        partitions=partitions,
        fault=fault,
        history=history,
    )


def _seen_table(console: Console, visitor: Visitor, name: str) -> tuple[TableView, QualifiedName]:
    found = next((each for each in list_tables(console, visitor) if each.name == name), None)
    if found is None:
        msg = f"Table {name} does not exist"
        raise TableNotFoundError(msg, left="Nothing was changed.", todo="See the list of tables.")
    catalog, database = split_key(found.database)
    return found, QualifiedName(name=found.table, db=database, catalog=None if catalog == INTERNAL else catalog)


def list_tokens(console: Console, visitor: Visitor) -> Result:
    """SHOW TOKENS: those that the visitor may see, with no token itself among them."""
    return console.session(visitor).execute(ShowTokens())


def create_token(console: Console, visitor: Visitor, *, comment: str, days: int, only_reads: bool) -> str:
    """CREATE TOKEN for the visitor: the token, which nobody can show again."""
    limits = TokenLimits(expires_in_days=days, scope=TokenScope(is_read_only=True) if only_reads else None)
    statement = CreateToken(user=visitor.user, comment=comment or None, limits=limits)
    ((_, token, _),) = console.session(visitor).execute(statement).rows
    return str(token)


def drop_token(console: Console, visitor: Visitor, token_id: str) -> None:
    """DROP TOKEN."""
    console.session(visitor).execute(DropToken(token_id=token_id))


def describe_table(console: Console, visitor: Visitor, name: str) -> Result:
    """The columns of a table that the visitor may see."""
    _, full = _seen_table(console, visitor, name)
    return console.session(visitor).execute(DescribeTable(name=full))


def known_names(console: Console, visitor: Visitor, database: str, *, asks_others: bool) -> Known:
    """Tables and columns for somebody who writes a statement. Catalogs of others are asked when `asks_others` is set:
    not while somebody types.
    """
    session = console.session(visitor, database)

    def columns(name: str) -> Mapping[str, str]:
        parts = name.split(".")
        if not all(parts) or len(parts) > len(("catalog", "database", "table")):
            return {}
        table, *outer = reversed(parts)
        full = QualifiedName(name=table, db=outer[0] if outer else None, catalog=outer[1] if outer[1:] else None)
        if is_external(full.within(database)) and not asks_others:
            return {}
        try:
            found = session.execute(DescribeTable(name=full))
        except LadingError:
            return {}  # Nobody asked for a list of mistakes: running the statement tells them.
        return {str(row["Field"]): str(row["Type"]) for row in found.dicts()}

    tables = {
        each.table if each.database == database else each.name: each.format for each in list_tables(console, visitor)
    }
    return Known(tables=tables, columns=columns)


def look_at_source(console: Console, visitor: Visitor, source: SourceFunction) -> tuple[Result, Result]:
    """The first rows of a source and its columns, as a job that begins now would read them. Nothing is written."""
    session = console.session(visitor)
    return session.execute(LookAt(source=source, limit=PREVIEW_ROWS)), session.execute(
        LookAt(source=source, limit=None)
    )


def told(error: LadingError) -> tuple[str, str]:
    """An error as a title and a line below it."""
    return redacted(error.what), redacted(" ".join(filter(None, (error.left, error.todo))))
