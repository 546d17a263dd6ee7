"""Databases and tables."""

from __future__ import annotations

from lading.errors import SqlError
from lading.model.table import ColumnChange, PartitionField
from lading.sql.expressions.type_names import read_type
from lading.sql.statements.compaction import AlterTableSet
from lading.sql.statements.parts import QualifiedName
from lading.sql.statements.tables import (
    AlterTable,
    ColumnDefinition,
    CreateDatabase,
    CreateTable,
    DescribeTable,
    DropDatabase,
    DropTable,
    LookAt,
    ShowDatabases,
    ShowTables,
    UseDatabase,
)
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.names import check_object_name
from lading.sql.syntax.parse_select import parse_source
from lading.sql.syntax.spans import Span

_TIMES = {word: word.removesuffix("S").lower() for word in ("YEARS", "MONTHS", "DAYS", "HOURS")}
_TRANSFORMS = {**_TIMES, **{word.removesuffix("S"): small for word, small in _TIMES.items()}}
_NUMBERED = {"BUCKET": "bucket", "TRUNCATE": "truncate"}


def parse_create_table(cursor: Cursor, *, may_lack_columns: bool = False) -> CreateTable:
    """CREATE TABLE [IF NOT EXISTS] [db.]t (columns) USING format [PARTITIONED BY (…)] [LOCATION] [COMMENT] …

    Without columns: … AS SCHEMA OF source(…), unless the job that makes the table has a source; or the table that is at
    the LOCATION is adopted.
    """
    cursor.expect("CREATE", "TABLE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = _new_table(cursor)
    columns = _columns(cursor) if cursor.token.is_symbol("(") else ()
    _explain_doris(cursor)
    cursor.expect("USING")
    format_span = cursor.token.span
    used = cursor.identifier("the name of a table format").lower()
    options = _Options()
    while _option(cursor, options, columns):
        continue
    schema_of = None
    if not columns and cursor.accept("AS"):
        cursor.expect("SCHEMA", "OF")
        schema_of = parse_source(cursor)
    if not columns and schema_of is None and options.location is None and not may_lack_columns:
        msg = f"Table {name.name} has no columns and no LOCATION"
        todo = "Write its columns, AS SCHEMA OF a source, or the LOCATION of a table that is there."
        raise SqlError(msg, place=name.span, hint="no columns", todo=todo)
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
        schema_of=schema_of,
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
    if cursor.is_done:
        cursor.fail("USING", todo="Say the format of the table: USING delta, USING iceberg or USING paimon.")


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
        if not known:
            return name  # The columns come from files; they are looked at when those are known.
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


def parse_alter_table(cursor: Cursor) -> AlterTable | AlterTableSet:
    """ALTER TABLE [db.]t ADD COLUMN c type [COMMENT '…'] [AFTER x | FIRST], MODIFY COLUMN c type, … | SET (…)"""
    cursor.expect("ALTER", "TABLE")
    name = cursor.qualified("table")
    if cursor.accept("SET"):
        cursor.accept("TBLPROPERTIES")
        return AlterTableSet(table=name, properties=cursor.properties())
    changes = [_change(cursor)]
    while cursor.accept_symbol(","):
        changes.append(_change(cursor))
    return AlterTable(name=name, changes=tuple(changes))


def _change(cursor: Cursor) -> ColumnChange:
    is_new = cursor.choose("ADD", "MODIFY") == "ADD"
    cursor.expect("COLUMN")
    span = cursor.token.span
    column = _column(cursor)
    if is_new:
        check_object_name(column.name, "column", span)
    if not column.nullable:
        msg = f"Column {column.name} cannot be NOT NULL: rows that are there have no value for it"
        raise SqlError(msg, place=span, hint="leave NOT NULL out")
    if column.max_length is not None:
        msg = f"Column {column.name} of a table that is there cannot have a length"
        raise SqlError(msg, place=span, hint="write STRING")
    after: str | None = None
    if is_new and cursor.accept("AFTER"):
        after = cursor.identifier("the name of a column")
    elif is_new and cursor.accept("FIRST"):
        after = ""
    comment = column.comment or ""
    return ColumnChange(name=column.name, type=column.type, is_new=is_new, after=after, comment=comment)


def parse_describe(cursor: Cursor) -> DescribeTable | LookAt:
    """DESCRIBE [[catalog.]db.]t, DESCRIBE FROM source(…)"""
    cursor.choose("DESCRIBE", "DESC")
    if cursor.accept("FROM"):
        return LookAt(source=parse_source(cursor), limit=None)
    if cursor.look(1).is_symbol("("):
        cursor.fail("FROM", todo="Write DESCRIBE FROM FILE(…); DESCRIBE alone is for tables.")
    return DescribeTable(name=cursor.qualified("table"))
