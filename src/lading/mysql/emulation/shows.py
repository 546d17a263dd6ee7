"""SHOW statements that MySQL clients send and Lading's own SQL does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lading.errors import SqlError
from lading.model.names import database_key, is_external, split_key
from lading.mysql.emulation.catalog import Catalog
from lading.mysql.emulation.constants import Surroundings
from lading.mysql.emulation.schema_tables import (
    CHARACTER_SETS,
    COLLATIONS,
    ENGINES,
    NAME,
    SYSTEM,
    schema_columns,
    schema_names,
)
from lading.mysql.emulation.tabular import Table, narrowed
from lading.mysql.protocol.errors import Fault
from lading.service.result import Result
from lading.sql.statements.parts import QualifiedName
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.tokens import Kind

_EMPTY: dict[tuple[str, ...], tuple[str, ...]] = {
    ("WARNINGS",): ("Level", "Code", "Message"),
    ("ERRORS",): ("Level", "Code", "Message"),
    ("PLUGINS",): ("Name", "Status", "Type", "Library", "License"),
    ("TRIGGERS",): ("Trigger", "Event", "Table", "Statement", "Timing", "Created", "sql_mode", "Definer"),
    ("EVENTS",): ("Db", "Name", "Definer", "Time zone", "Type", "Status"),
    ("PROCEDURE", "STATUS"): ("Db", "Name", "Type", "Definer", "Modified", "Created", "Security_type", "Comment"),
    ("FUNCTION", "STATUS"): ("Db", "Name", "Type", "Definer", "Modified", "Created", "Security_type", "Comment"),
    ("MASTER", "STATUS"): ("File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set"),
    ("SLAVE", "STATUS"): ("Slave_IO_State",),
    ("REPLICA", "STATUS"): ("Replica_IO_State",),
    ("BINARY", "LOGS"): ("Log_name", "File_size"),
    ("OPEN", "TABLES"): ("Database", "Table", "In_use", "Name_locked"),
    ("PROFILES",): ("Query_ID", "Duration", "Query"),
    ("PRIVILEGES",): ("Privilege", "Context", "Comment"),
}
_INDEX = (
    *("Table", "Non_unique", "Key_name", "Seq_in_index", "Column_name", "Collation", "Cardinality", "Sub_part"),
    *("Packed", "Null", "Index_type", "Comment", "Index_comment", "Visible", "Expression"),
)
_STATUS = (
    *("Name", "Engine", "Version", "Row_format", "Rows", "Avg_row_length", "Data_length", "Max_data_length"),
    *("Index_length", "Data_free", "Auto_increment", "Create_time", "Update_time", "Check_time", "Collation"),
    *("Checksum", "Create_options", "Comment"),
)
PROCESSES = ("Id", "User", "Host", "db", "Command", "Time", "State", "Info")


class Shows:
    """What SHOW shows to one user."""

    def __init__(
        self,
        catalog: Catalog,
        processes: Callable[[], Iterable[Sequence[Any]]],
        status: Callable[[], Iterable[Sequence[Any]]],
    ) -> None:
        self._catalog = catalog
        self._processes = processes
        self._status = status

    def answer(self, text: str, around: Surroundings) -> Result | None:
        """The answer; None when it is no SHOW of MySQL's."""
        try:
            cursor = Cursor(text)
            if not cursor.accept("SHOW"):
                return None
            if cursor.sees("CREATE"):
                return self._create(cursor, around)
            table = self._table(cursor, around)
            if table is None:
                return None
            like, where = _narrowing(cursor)
        except SqlError:
            return None
        return table.result if like is None and where is None else narrowed(table, like, where, around)

    def _table(self, cursor: Cursor, around: Surroundings) -> Table | None:
        cursor.accept("EXTENDED")
        is_full = cursor.accept("FULL")
        if not is_full and not cursor.accept("GLOBAL") and not cursor.accept("SESSION"):
            cursor.accept("LOCAL")
        for words, columns in _EMPTY.items():
            if cursor.accept(*words):
                _database(cursor, around)
                return Table(columns=columns)
        return self._plain(cursor, around) or self._of_tables(cursor, around, is_full=is_full)

    def _plain(self, cursor: Cursor, around: Surroundings) -> Table | None:
        if cursor.accept("VARIABLES"):
            return Table(columns=("Variable_name", "Value"), rows=around.variables.listed())
        if cursor.accept("STATUS"):
            return Table(columns=("Variable_name", "Value"), rows=self._status())
        if cursor.accept("ENGINES") or cursor.accept("STORAGE", "ENGINES"):
            return Table(columns=("Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"), rows=ENGINES)
        if cursor.accept("COLLATION"):
            heads = ("Collation", "Charset", "Id", "Default", "Compiled", "Sortlen")
            return Table(columns=heads, rows=COLLATIONS)
        if cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
            rows = [(name, told, collation, most) for name, collation, told, most in CHARACTER_SETS]
            return Table(columns=("Charset", "Description", "Default collation", "Maxlen"), rows=rows)
        if cursor.accept("PROCESSLIST"):
            return Table(columns=PROCESSES, rows=self._processes())
        if cursor.accept("DATABASES") or cursor.accept("SCHEMAS"):
            is_named = cursor.accept("FROM") or cursor.accept("IN")
            names = self._catalog.databases(cursor.identifier("catalog") if is_named else around.catalog)
            return Table(columns=("Database",), rows=[(split_key(name)[1],) for name in names])
        if cursor.accept("COUNT"):
            cursor.rest()
            return Table(columns=("@@session.warning_count",), rows=[(0,)])
        return None

    def _of_tables(self, cursor: Cursor, around: Surroundings, *, is_full: bool) -> Table | None:
        if cursor.accept("TABLES"):
            return self._names(_database(cursor, around) or around.database, is_full=is_full)
        if cursor.accept("TABLE", "STATUS"):
            return self._states(_database(cursor, around) or around.database)
        if cursor.accept("COLUMNS") or cursor.accept("FIELDS"):
            return self._columns(*_named_table(cursor, around), is_full=is_full)
        if cursor.accept("INDEX") or cursor.accept("INDEXES") or cursor.accept("KEYS"):
            self._catalog.table(*_named_table(cursor, around))
            return Table(columns=_INDEX)
        return None

    def _names(self, database: str, *, is_full: bool) -> Table:
        kind = "BASE TABLE"
        if database.lower() in SYSTEM:
            kind, names = "SYSTEM VIEW", schema_names() if database.lower() == NAME else []
        else:
            self._catalog.require(database)
            names = [entry.name for entry in self._catalog.tables(database)]
        head = f"Tables_in_{split_key(database)[1]}"
        if is_full:
            return Table(columns=(head, "Table_type"), rows=[(name, kind) for name in names])
        return Table(columns=(head,), rows=[(name,) for name in names])

    def _states(self, database: str) -> Table:
        if database.lower() in SYSTEM:
            return Table(columns=_STATUS)
        self._catalog.require(database)
        rows: list[tuple[Any, ...]] = []
        for entry in self._catalog.tables(database):
            comment = entry.spec.properties.get("comment", "") if entry.spec else ""
            made = None if is_external(database) else entry.created_at.strftime("%Y-%m-%d %H:%M:%S")
            nothing = (None,) * 7
            head = (entry.name, entry.format, 10, "Dynamic")
            rows.append((*head, *nothing, made, None, None, "utf8mb4_general_ci", None, "", comment))
        return Table(columns=_STATUS, rows=rows)

    def _columns(self, database: str, name: str, *, is_full: bool) -> Table:
        rows: list[tuple[Any, ...]] = []
        known = schema_columns(name) if database.lower() == NAME else None
        for column in known or self._catalog.columns(self._catalog.table(database, name)):
            null = "YES" if column.nullable else "NO"
            if is_full:
                collation = "utf8mb4_general_ci" if column.base_type in ("text", "varchar") else None
                rows.append((column.name, column.type, collation, null, "", None, "", "select", column.comment))
            else:
                rows.append((column.name, column.type, null, "", None, ""))
        short = ("Field", "Type", "Null", "Key", "Default", "Extra")
        full = ("Field", "Type", "Collation", "Null", "Key", "Default", "Extra", "Privileges", "Comment")
        return Table(columns=full if is_full else short, rows=rows)

    def _create(self, cursor: Cursor, around: Surroundings) -> Result | None:
        cursor.expect("CREATE")
        if cursor.accept("TABLE"):
            name = cursor.qualified("table")
            entry = self._catalog.table(_place(name, around), name.name)
            rows = [(entry.name, self._catalog.create_statement(entry))]
            return Table(columns=("Table", "Create Table"), rows=rows).result
        if cursor.accept("DATABASE") or cursor.accept("SCHEMA"):
            if cursor.accept("IF"):
                cursor.expect("NOT", "EXISTS")
            named = cursor.database()
            self._catalog.require(_key(named.db, named.name, around))
            whole = ".".join(f"`{part}`" for part in (named.db, named.name) if part is not None)
            rows = [(named.name, f"CREATE DATABASE {whole}")]
            return Table(columns=("Database", "Create Database"), rows=rows).result
        return None


def _database(cursor: Cursor, around: Surroundings) -> str | None:
    """What stands behind FROM, with its catalog."""
    if cursor.accept("FROM") or cursor.accept("IN"):
        named = cursor.database()
        return _key(named.db, named.name, around)
    return None


def _named_table(cursor: Cursor, around: Surroundings) -> tuple[str, str]:
    cursor.choose("FROM", "IN")
    name = cursor.qualified("table")
    return _database(cursor, around) or _place(name, around), name.name


def _place(name: QualifiedName, around: Surroundings) -> str:
    return around.database if name.db is None else _key(name.catalog, name.db, around)


def _key(catalog: str | None, database: str, around: Surroundings) -> str:
    """A database with its catalog. What MySQL has for itself is in no catalog; each has the first one of these."""
    if database.lower() == NAME or (catalog is None and database.lower() in SYSTEM):
        return database
    return database_key(catalog or around.catalog, database)


def _narrowing(cursor: Cursor) -> tuple[str | None, str | None]:
    """What stands in LIKE or WHERE; LIMIT of an empty list is let pass."""
    if cursor.accept("LIKE"):
        pattern = cursor.token
        if pattern.kind is not Kind.STRING:
            raise Fault(1064, "42000", "LIKE wants a string")
        cursor.take()
        return pattern.value, None
    if cursor.accept("WHERE"):
        span = cursor.rest()
        return None, cursor.text[span.start : span.end]
    if cursor.accept("LIMIT"):
        cursor.rest()
    if cursor.token.kind is not Kind.END:
        cursor.fail("LIKE", "WHERE")
    return None, None
