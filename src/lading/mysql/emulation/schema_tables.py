"""information_schema: its tables, filled from the catalog when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from lading.model.names import INTERNAL, database_key, split_key
from lading.mysql.emulation.catalog import Catalog, KnownColumn
from lading.mysql.emulation.constants import NotConstantError, Surroundings, value_of
from lading.mysql.emulation.schema_columns import COLUMNS
from lading.mysql.emulation.tabular import Table, ask
from lading.mysql.emulation.variables import CHARSETS
from lading.mysql.protocol.errors import Fault
from lading.service.result import Result
from lading.store.records import TableEntry
from lading.tables.registry import all_kinds

NAME = "information_schema"
OF_LADING = frozenset(("routine_load_jobs",))
"""Tables of information_schema that tell of jobs."""
PERFORMANCE = "performance_schema"
SYSTEM = (NAME, PERFORMANCE, "mysql", "sys")
_OF_PERFORMANCE = frozenset(("global_status", "session_status", "global_variables", "session_variables"))
_COLLATION = "utf8mb4_general_ci"
_MORE: dict[str, tuple[str, ...]] = {
    "engines": ("engine", "support", "comment", "transactions", "xa", "savepoints"),
    "plugins": ("plugin_name", "plugin_version", "plugin_status", "plugin_type", "plugin_library", "plugin_license"),
    "processlist": ("id", "user", "host", "db", "command", "time", "state", "info"),
    "check_constraints": ("constraint_catalog", "constraint_schema", "constraint_name", "check_clause"),
    "collation_character_set_applicability": ("collation_name", "character_set_name"),
    "global_variables": ("variable_name", "variable_value"),
    "session_variables": ("variable_name", "variable_value"),
    "global_status": ("variable_name", "variable_value"),
    "session_status": ("variable_name", "variable_value"),
    "files": ("file_id", "file_name", "file_type", "tablespace_name", "engine"),
    "keywords": ("word", "reserved"),
    "innodb_tables": ("table_id", "name"),
    "applicable_roles": ("user", "host", "grantee", "role_name", "is_grantable"),
    "enabled_roles": ("role_name", "role_host", "is_default", "is_mandatory"),
}
_OF_MYSQL: dict[str, tuple[str, ...]] = {
    "tables_priv": ("host", "db", "user", "table_name", "grantor", "timestamp", "table_priv", "column_priv"),
    "columns_priv": ("host", "db", "user", "table_name", "column_name", "timestamp", "column_priv"),
    "procs_priv": ("host", "db", "user", "routine_name", "routine_type", "grantor", "proc_priv", "timestamp"),
    "proc": ("db", "name", "type", "specific_name", "comment"),
    "func": ("name", "ret", "dl", "type"),
}
"""Tables of the schema mysql that drivers ask for. They have no rows: SHOW GRANTS tells who may do what."""
_FORMATS = [kind.title for kind in all_kinds()]
ENGINES = (("lading", "DEFAULT", f"{', '.join(_FORMATS[:-1])} and {_FORMATS[-1]} tables", "YES", "NO", "NO"),)
COLLATIONS = (
    (_COLLATION, "utf8mb4", 45, "Yes", "Yes", 1),
    ("utf8mb4_bin", "utf8mb4", 46, "", "Yes", 1),
    ("utf8mb3_general_ci", "utf8mb3", 33, "Yes", "Yes", 1),
    ("latin1_swedish_ci", "latin1", 8, "Yes", "Yes", 1),
    ("ascii_general_ci", "ascii", 11, "Yes", "Yes", 1),
    ("binary", "binary", 63, "Yes", "Yes", 1),
)
CHARACTER_SETS = tuple((name, "binary" if name == "binary" else f"{name}_general_ci", name, 4) for name in CHARSETS)


def is_about_schema(tree: exp.Expr, database: str) -> bool:
    """Whether a query is over tables of information_schema, or of another schema that MySQL has for itself."""
    tables = _tables_of(tree)
    if any(table.db.lower() == NAME and table.name.lower() in OF_LADING for table in tables):
        return False  # Lading itself answers for it.
    mentioned = {_schema_of(table, database) for table in tables}
    if not mentioned & set(SYSTEM):
        return False
    if others := mentioned - set(SYSTEM):
        msg = f"One query cannot ask both {NAME} and tables of {', '.join(sorted(others))}. Ask them one by one."
        raise Fault(1235, "42000", msg)
    return True


def _tables_of(tree: exp.Expr) -> list[exp.Table]:
    named = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    return [table for table in tree.find_all(exp.Table) if table.db or table.name.lower() not in named]


def _schema_of(table: exp.Table, database: str) -> str:
    """The schema that a table is in. Every catalog has its information_schema; the other ones of MySQL are in none."""
    if not table.catalog or table.db.lower() == NAME:
        return (table.db or database).lower()
    return database_key(table.catalog, table.db).lower()


class SchemaTables:
    """The tables of information_schema for one user."""

    def __init__(
        self,
        catalog: Catalog,
        processes: Callable[[], Iterable[Sequence[Any]]],
        status: Callable[[], Iterable[Sequence[Any]]],
    ) -> None:
        self._catalog = catalog
        self._processes = processes
        self._status = status

    def answer(self, tree: exp.Expr, around: Surroundings) -> Result:
        """The answer to a query over them."""
        tree = tree.copy()
        wanted = {table.name.lower(): table for table in _tables_of(tree)}
        for name, table in wanted.items():
            schema = _schema_of(table, around.database)
            is_there = schema == NAME or (schema == PERFORMANCE and name in _OF_PERFORMANCE)
            is_there = is_there and _columns(name) is not None
            if not is_there and not (schema == "mysql" and name in _OF_MYSQL):
                raise Fault(1146, "42S02", f"Table '{schema}.{table.name}' doesn't exist")
        asked = _Asked(catalog=_catalog_of(tree, around), only=_only(tree, around))
        for table in _tables_of(tree):
            table.set("db", exp.to_identifier(NAME))
            table.set("catalog", None)
        tables = {name: self._table(name, asked, around) for name in wanted}
        return ask(tables, NAME, tree, around)

    def _table(self, name: str, asked: _Asked, around: Surroundings) -> Table:
        columns = _columns(name) or _OF_MYSQL.get(name, ())
        rows = self._rows(name, asked, around)
        upper = tuple(column.upper() for column in columns)
        return Table(columns=upper, rows=[(*row, *[None] * (len(columns) - len(row))) for row in rows])

    def _rows(self, name: str, asked: _Asked, around: Surroundings) -> Iterable[Sequence[Any]]:
        match name:
            case "schemata":
                names = (NAME, *(split_key(key)[1] for key in self._catalog.databases(asked.catalog)))
                return [(asked.shown, name, "utf8mb4", _COLLATION) for name in names]
            case "tables":
                return self._tables(asked)
            case "columns":
                return self._columns(asked)
            case "engines":
                return ENGINES
            case "character_sets":
                return CHARACTER_SETS
            case "collations":
                return COLLATIONS
            case "collation_character_set_applicability":
                return [(row[0], row[1]) for row in COLLATIONS]
            case "processlist":
                return self._processes()
            case "global_variables" | "session_variables":
                return around.variables.listed()
            case "global_status" | "session_status":
                return self._status()
            case _:
                return ()

    def _entries(self, asked: _Asked) -> Iterable[TableEntry]:
        for key in self._catalog.databases(asked.catalog):
            if asked.has("table_schema", split_key(key)[1]):
                yield from (entry for entry in self._catalog.tables(key) if asked.has("table_name", entry.name))

    def _tables(self, asked: _Asked) -> Iterable[Sequence[Any]]:
        for table in schema_names():
            yield (asked.shown, NAME, table, "SYSTEM VIEW", "MEMORY", 10)
        for entry in self._entries(asked):
            catalog, database = split_key(entry.database)
            made = entry.created_at.strftime("%Y-%m-%d %H:%M:%S") if catalog == INTERNAL else None
            comment = entry.spec.properties.get("comment", "") if entry.spec else ""
            head = (asked.shown, database, entry.name, "BASE TABLE", entry.format, 10, "Dynamic")
            yield (*head, None, None, None, None, None, None, None, made, None, None, _COLLATION, None, "", comment)

    def _columns(self, asked: _Asked) -> Iterable[Sequence[Any]]:
        for entry in self._entries(asked):
            for number, column in enumerate(self._catalog.columns(entry), start=1):
                yield _column_row((asked.shown, split_key(entry.database)[1], entry.name), number, column)
        for table in schema_names():
            for number, column in enumerate(schema_columns(table) or (), start=1):
                yield _column_row((asked.shown, NAME, table), number, column)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a query is about, as far as that spares looking at the rest: the catalogs of others are asked over the
    network, and each table for its columns.
    """

    catalog: str
    only: Mapping[str, frozenset[str]]
    """Columns that must have one of some values, in small letters."""

    @property
    def shown(self) -> str:
        """What stands in TABLE_CATALOG. MySQL's drivers know one catalog, and this is its name."""
        return "def" if self.catalog == INTERNAL else self.catalog

    def has(self, column: str, value: str) -> bool:
        """Whether a row with this value may be in the answer."""
        return column not in self.only or value.lower() in self.only[column]


def _catalog_of(tree: exp.Expr, around: Surroundings) -> str:
    catalogs = {table.catalog or around.catalog for table in _tables_of(tree)}
    if len(catalogs) > 1:
        msg = f"One query cannot ask the {NAME} of {' and of '.join(sorted(catalogs))}. Ask them one by one."
        raise Fault(1235, "42000", msg)
    return catalogs.pop() if catalogs else around.catalog


def _only(tree: exp.Expr, around: Surroundings) -> dict[str, frozenset[str]]:
    """From `column = value` and `column IN (values)`, in a query of one table that has nothing but AND around them."""
    where = tree.args.get("where") if isinstance(tree, exp.Select) else None
    if where is None or len(list(tree.find_all(exp.Table))) != 1 or any(tree.find_all(exp.Subquery)):
        return {}
    found: dict[str, frozenset[str]] = {}
    for part in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        values = [part.expression] if isinstance(part, exp.EQ) else part.expressions if isinstance(part, exp.In) else []
        if not values or not isinstance(part.this, exp.Column):
            continue
        try:
            said = frozenset(str(value_of(value, around)).lower() for value in values)
        except (NotConstantError, ValueError):
            continue
        found[part.this.name.lower()] = said
    return found


def _column_row(place: tuple[str, str, str], number: int, column: KnownColumn) -> tuple[Any, ...]:
    inner = column.type.partition("(")[2].removesuffix(")").split(",")
    sizes = [int(part) for part in inner if part.strip().isdecimal()]
    is_text = column.base_type in ("text", "varchar", "json")
    length = (sizes[0] if sizes else 65535) if is_text else None
    precision, scale = (sizes[0], sizes[1]) if column.base_type == "decimal" and len(sizes) == 2 else (None, None)
    charset, collation = ("utf8mb4", _COLLATION) if is_text else (None, None)
    return (
        *(*place, column.name, number, None, "YES" if column.nullable else "NO", column.base_type),
        *(length, length, precision, scale, 6 if column.base_type == "datetime" else None, charset, collation),
        *(column.type, "", "", "select", column.comment, "", None),
    )


def schema_names() -> list[str]:
    """The names of all of them."""
    return sorted(name.upper() for name in {*COLUMNS, *_MORE})


def schema_columns(table: str) -> list[KnownColumn] | None:
    """The columns of one of them; None when there is none of that name."""
    names = _columns(table.lower())
    if names is None:
        return None
    return [KnownColumn(name=name.upper(), type="varchar(512)", nullable=True, comment="") for name in names]


def _columns(name: str) -> tuple[str, ...] | None:
    return COLUMNS.get(name) or _MORE.get(name)
