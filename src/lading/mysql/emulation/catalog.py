"""Databases, tables and columns as MySQL clients want to be told of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from lading.errors import NotFoundError, TableNotFoundError
from lading.model.names import INTERNAL, is_external
from lading.model.table import Column, PartitionField
from lading.service.installation import Installation
from lading.sql.statements.parts import QualifiedName
from lading.sql.statements.tables import COMMENT_PROPERTY, LENGTH_PROPERTY, ColumnDefinition, CreateTable
from lading.sql.syntax.render import render
from lading.sql.syntax.render_parts import quoted_name
from lading.store.records import TableEntry
from lading.tables.types import spark_type

Sees = Callable[[str, str], bool]
"""Whether somebody may know of a table of a database; with an empty table, of the database."""

_TYPES = {
    "string": "text",
    "boolean": "tinyint(1)",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp": "datetime(6)",
    "timestamp_ntz": "datetime(6)",
    "binary": "blob",
    "array": "json",
    "map": "json",
    "struct": "json",
    "variant": "json",
}
_BASE = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownColumn:
    """A column of a table."""

    name: str
    type: str
    """MySQL's name of the type."""
    nullable: bool
    comment: str

    @property
    def base_type(self) -> str:
        """The type without its lengths."""
        return self.type.partition("(")[0]


class Catalog:
    """What one user may know of the tables of a home. Columns come from what CREATE TABLE said, else from the table."""

    def __init__(self, lading: Installation, sees: Sees) -> None:
        self._lading = lading
        self._sees = sees

    def has_catalog(self, catalog: str) -> bool:
        """Whether there is such a catalog of others."""
        return self._lading.catalog.external.has(catalog)

    def databases(self, catalog: str = INTERNAL) -> list[str]:
        """The databases of a catalog, each with its catalog."""
        return [key for key in self._lading.catalog.databases(catalog) if self._sees(key, "")]

    def require(self, database: str) -> None:
        """Refuse a database that is not there."""
        if not self._sees(database, "") or not self._lading.catalog.has_database(database):
            msg = f"Unknown database '{database}'"
            raise NotFoundError(msg, code="DatabaseNotFound", left="Nothing was changed.", todo="See SHOW DATABASES.")

    def tables(self, database: str) -> list[TableEntry]:
        """Tables of a database."""
        if not is_external(database):
            found = self._lading.store.list_tables(database)
        else:
            found = [self._lading.catalog.entry(database, name) for name in self._lading.catalog.tables(database)]
        return [entry for entry in found if self._sees(entry.database, entry.name)]

    def table(self, database: str, name: str) -> TableEntry:
        """One table. Raises TableNotFoundError, also for one that the user may not know of."""
        if not self._sees(database, name):
            msg = f"Unknown table '{name}' in database '{database}'"
            raise TableNotFoundError(msg, left="Nothing was changed.", todo="See SHOW TABLES, or create it.")
        return self._lading.catalog.require_table(database, name)

    def columns(self, entry: TableEntry) -> list[KnownColumn]:
        """The columns of a table."""
        said = entry.spec.properties if entry.spec else {}
        return [
            KnownColumn(
                name=column.name,
                type=mysql_type(column.type, said.get(LENGTH_PROPERTY + column.name)),
                nullable=column.nullable,
                comment=said.get(COMMENT_PROPERTY + column.name, ""),
            )
            for column in self._plain_columns(entry)
        ]

    def create_statement(self, entry: TableEntry) -> str:
        """CREATE TABLE as it could have been written."""
        said = dict(entry.spec.properties) if entry.spec else {}
        columns = tuple(
            ColumnDefinition(
                name=column.name,
                type=column.type,
                nullable=column.nullable,
                comment=said.pop(COMMENT_PROPERTY + column.name, None),
                max_length=_length(said.pop(LENGTH_PROPERTY + column.name, None)),
            )
            for column in self._plain_columns(entry)
        )
        statement = CreateTable(
            name=QualifiedName(name=entry.name).bound(entry.database),
            columns=columns,
            format=entry.format,
            partition_by=self._partition_by(entry),
            location=entry.location or None,
            comment=said.pop("comment", None),
            properties=said,
        )
        text = render(statement)
        for column in columns:
            # Tools that read columns from this text know them by their quotes.
            name = column.name.replace("`", "``")
            text = text.replace(f"\n    {quoted_name(column.name)} ", f"\n  `{name}` ", 1)
        return text

    def _partition_by(self, entry: TableEntry) -> tuple[PartitionField, ...]:
        if entry.spec is not None:
            return entry.spec.partition_by
        parts = self._lading.catalog.open_table(entry.database, entry.name).writer_spec().partition_by
        return tuple(PartitionField(column=column, transform=transform) for column, transform in parts)

    def _plain_columns(self, entry: TableEntry) -> tuple[Column, ...]:
        if entry.spec is not None:
            return entry.spec.columns
        schema = self._lading.catalog.open_table(entry.database, entry.name).schema()
        return tuple(Column(name=f.name, type=spark_type(f.type), nullable=f.nullable) for f in schema)


def mysql_type(spark: str, length: str | None = None) -> str:
    """MySQL's name of a Spark type."""
    if length is not None:
        return f"varchar({length})"
    base = _BASE.match(spark.lower())
    return _TYPES.get(base[0] if base else "", spark.lower())


def _length(text: str | None) -> int | None:
    return None if text is None else int(text)
