"""Databases and tables."""

from __future__ import annotations

from lading.errors import SqlError
from lading.model.table import PartitionField
from lading.sql.expressions.type_names import read_type
from lading.sql.statements.parts import QualifiedName
from lading.sql.statements.tables import (
    ColumnDefinition,
    CreateDatabase,
    CreateTable,
    DescribeTable,
    DropDatabase,
    DropTable,
    ShowDatabases,
    ShowTables,
    UseDatabase,
)
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.names import check_object_name
from lading.sql.syntax.spans import Span

_TIMES = {word: word.removesuffix("S").lower() for word in ("YEARS", "MONTHS", "DAYS", "HOURS")}
_TRANSFORMS = {**_TIMES, **{word.removesuffix("S"): small for word, small in _TIMES.items()}}
_NUMBERED = {"BUCKET": "bucket", "TRUNCATE": "truncate"}


def parse_create_table(cursor: Cursor) -> CreateTable:
    """CREATE TABLE [IF NOT EXISTS] [db.]t (columns) USING format [PARTITIONED BY (…)] [LOCATION] [COMMENT] …"""
    cursor.expect("CREATE", "TABLE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = _new_table(cursor)
    columns = _columns(cursor)
    _explain_doris(cursor)
    cursor.expect("USING")
    format_span = cursor.token.span
    used = cursor.identifier("the name of a table format").lower()
    options = _Options()
    while _option(cursor, options, columns):
        continue
    return CreateTable(
        name=name,
        columns=columns,
        format=used,
        format_span=format_span,
        partition_by=options.partition_by or (),
        location=options.location,
        comment=options.comment,
        properties=options.properties or {},
        if_not_exists=if_not_exists,
    )


class _Options:
    """What follows USING, in any order. None: not written yet."""

    partition_by: tuple[PartitionField, ...] | None = None
    location: str | None = None
    comment: str | None = None
    properties: dict[str, str] | None = None


def _option(cursor: Cursor, options: _Options, columns: tuple[ColumnDefinition, ...]) -> bool:
    if options.partition_by is None and cursor.accept("PARTITIONED", "BY"):
        options.partition_by = _partition_fields(cursor, columns)
    elif options.location is None and cursor.accept("LOCATION"):
        options.location = cursor.string("a location in quotes")
    elif options.comment is None and cursor.accept("COMMENT"):
        options.comment = cursor.string("a comment in quotes")
    elif options.properties is None and cursor.accept("TBLPROPERTIES"):
        options.properties = cursor.properties()
    else:
        return False
    return True


def _explain_doris(cursor: Cursor) -> None:
    if cursor.token.upper in ("DUPLICATE", "UNIQUE", "AGGREGATE", "DISTRIBUTED", "ENGINE", "PROPERTIES", "PARTITION"):
        msg = f"mismatched input '{cursor.token.span.slice}', expected USING"
        todo = "Lading's tables are lakehouse tables: write for example USING delta, and PARTITIONED BY (…)."
        raise SqlError(msg, place=cursor.token.span, hint="expected USING", todo=todo)


def _new_table(cursor: Cursor) -> QualifiedName:
    name = cursor.qualified("table")
    if name.db is not None:
        check_object_name(name.db, "database", name.span)
    check_object_name(name.name, "table", name.span)
    return name


def _columns(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    found: list[ColumnDefinition] = []

    def read() -> None:
        span = cursor.token.span
        if cursor.sees("PRIMARY", "KEY"):
            msg = "PRIMARY KEY is not supported: loads append rows to tables, and replace none"
            raise SqlError(msg, place=span, hint="leave it out")
        column = _column(cursor)
        check_object_name(column.name, "column", span)
        if column.name.lower() in (known.name.lower() for known in found):
            msg = f"Column {column.name} is there twice"
            raise SqlError(msg, place=span, hint="named before")
        found.append(column)

    cursor.listed(read)
    return tuple(found)


def _column(cursor: Cursor) -> ColumnDefinition:
    name = cursor.identifier("the name of a column")
    kind = read_type(cursor)
    nullable = not cursor.accept("NOT", "NULL")
    if nullable:
        cursor.accept("NULL")
    comment = cursor.string("a comment in quotes") if cursor.accept("COMMENT") else None
    return ColumnDefinition(name=name, type=kind.name, nullable=nullable, comment=comment, max_length=kind.max_length)


def _partition_fields(cursor: Cursor, columns: tuple[ColumnDefinition, ...]) -> tuple[PartitionField, ...]:
    known = {column.name.lower(): column.name for column in columns}
    found: list[PartitionField] = []

    def column_name() -> str:
        span = cursor.token.span
        name = cursor.identifier("the name of a column")
        if name.lower() not in known:
            msg = f"The table has no column {name} to partition by"
            raise SqlError(msg, place=span, hint="unknown column")
        return known[name.lower()]

    def read() -> None:
        word = cursor.token.upper
        if not cursor.look(1).is_symbol("("):
            found.append(PartitionField(column=column_name()))
            return
        if word not in _TRANSFORMS and word not in _NUMBERED:
            cursor.fail("a column", *sorted(_NUMBERED), *sorted(_TIMES))
        cursor.take()
        cursor.expect_symbol("(")
        if word in _NUMBERED:
            count = _positive(cursor)
            cursor.expect_symbol(",")
            found.append(PartitionField(column=column_name(), transform=f"{_NUMBERED[word]}[{count}]"))
        else:
            found.append(PartitionField(column=column_name(), transform=_TRANSFORMS[word]))
        cursor.expect_symbol(")")

    cursor.listed(read)
    return tuple(found)


def _positive(cursor: Cursor) -> int:
    span: Span = cursor.token.span
    count = cursor.number("a number")
    if count < 1:
        msg = "mismatched input: the number must be at least 1"
        raise SqlError(msg, place=span, hint="at least 1")
    return count


def parse_drop_table(cursor: Cursor) -> DropTable:
    """DROP TABLE [IF EXISTS] [[catalog.]db.]t [PURGE]"""
    cursor.expect("DROP", "TABLE")
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.qualified("table")
    return DropTable(name=name, if_exists=if_exists, is_purged=cursor.accept("PURGE"))


def parse_create_database(cursor: Cursor) -> CreateDatabase:
    """CREATE DATABASE [IF NOT EXISTS] [catalog.]db"""
    cursor.expect("CREATE", "DATABASE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    database = cursor.database()
    check_object_name(database.name, "database", database.span)
    return CreateDatabase(name=database.name, catalog=database.db, if_not_exists=if_not_exists)


def parse_drop_database(cursor: Cursor) -> DropDatabase:
    """DROP DATABASE [IF EXISTS] [catalog.]db"""
    cursor.expect("DROP", "DATABASE")
    if_exists = cursor.accept("IF", "EXISTS")
    database = cursor.database()
    return DropDatabase(name=database.name, catalog=database.db, if_exists=if_exists)


def parse_use(cursor: Cursor) -> UseDatabase:
    """USE [catalog.]db"""
    cursor.expect("USE")
    database = cursor.database()
    return UseDatabase(name=database.name, catalog=database.db)


def parse_show_databases(cursor: Cursor) -> ShowDatabases:
    """SHOW DATABASES [FROM catalog]"""
    cursor.expect("SHOW", "DATABASES")
    has_catalog = cursor.accept("FROM") or cursor.accept("IN")
    return ShowDatabases(catalog=cursor.identifier("the name of a catalog") if has_catalog else None)


def parse_show_tables(cursor: Cursor) -> ShowTables:
    """SHOW TABLES [FROM [catalog.]db]"""
    cursor.expect("SHOW", "TABLES")
    if not (cursor.accept("FROM") or cursor.accept("IN")):
        return ShowTables()
    database = cursor.database()
    return ShowTables(db=database.name, catalog=database.db)


def parse_describe(cursor: Cursor) -> DescribeTable:
    """DESCRIBE [[catalog.]db.]t"""
    cursor.choose("DESCRIBE", "DESC")
    return DescribeTable(name=cursor.qualified("table"))
