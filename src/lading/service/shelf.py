"""Tables by name: making, opening and dropping them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from lading.clock import Clock
from lading.errors import TableExistsError, TableNotFoundError
from lading.service.home import Home
from lading.sql.parts import QualifiedName
from lading.sql.table_statements import CreateTable
from lading.store.protocols import Catalog
from lading.store.records import DatabaseEntry, TableEntry
from lading.tables.base import LakeTable

CATALOG = "lading"


class Shelf:
    """The tables of one home."""

    def __init__(self, home: Home, catalog: Catalog, clock: Clock) -> None:
        self._home = home
        self._catalog = catalog
        self._clock = clock

    def create_table(self, statement: CreateTable, database: str) -> None:
        """CREATE TABLE. The table first, then its name: a kill in between leaves a table that can be made again."""
        name = statement.name.name
        self.require_database(database)
        if self._catalog.find_table(database, name) is not None:
            if statement.if_not_exists:
                return
            msg = f"Table {database}.{name} is already there"
            raise TableExistsError(msg, left="It was not touched.", todo="Choose another name, or drop it first.")
        location = statement.location or str(self._home.warehouse / database / name)
        self._make(statement, database, location)
        self._catalog.create_table(
            TableEntry(
                database=database,
                name=name,
                format=statement.format,
                location=location,
                catalog=CATALOG if statement.format == "iceberg" else "",
                spec=statement.spec,
                created_at=self._clock.now(),
            )
        )

    def open_table(self, database: str, name: str) -> LakeTable:
        """The table of a name."""
        entry = self.entry(database, name)
        if entry.format == "delta":
            from lading.tables.delta.create import open_delta_table

            return open_delta_table(entry.location)
        from lading.tables.iceberg.catalog import sqlite_catalog
        from lading.tables.iceberg.table import open_iceberg_table

        return open_iceberg_table(sqlite_catalog(self._home.path), f"{database}.{name}")

    def entry(self, database: str, name: str) -> TableEntry:
        """What is known of a table by its name."""
        entry = self._catalog.find_table(database, name)
        if entry is None:
            msg = f"Unknown table '{name}' in database '{database}'"
            raise TableNotFoundError(msg, left="Nothing was changed.", todo="See SHOW TABLES, or create it.")
        return entry

    def drop_table(self, name: QualifiedName, database: str, *, if_exists: bool) -> None:
        """DROP TABLE: the name first, then the files, when they are in the warehouse of this home."""
        found = self._catalog.find_table(database, name.name)
        if found is None and if_exists:
            return
        entry = self.entry(database, name.name)
        self._catalog.drop_table(database, name.name)
        if entry.format == "iceberg":
            from lading.tables.iceberg.catalog import drop_table, sqlite_catalog

            drop_table(sqlite_catalog(self._home.path), f"{database}.{name.name}")
        place = Path(entry.location)
        if place.is_relative_to(self._home.warehouse):
            shutil.rmtree(place, ignore_errors=True)

    def create_database(self, name: str, *, if_not_exists: bool) -> None:
        """CREATE DATABASE."""
        if if_not_exists and self.has_database(name):
            return
        self._catalog.create_database(DatabaseEntry(name=name, created_at=self._clock.now()))

    def has_database(self, name: str) -> bool:
        """Whether a database is there."""
        return any(entry.name == name for entry in self._catalog.list_databases())

    def require_database(self, name: str) -> None:
        """Refuse a database that is not there."""
        if not self.has_database(name):
            msg = f"Unknown database '{name}'"
            raise TableNotFoundError(msg, left="Nothing was changed.", todo=f"CREATE DATABASE {name} first.")

    def _make(self, statement: CreateTable, database: str, location: str) -> None:
        if statement.format == "delta":
            from lading.tables.delta.create import create_delta_table

            # delta-rs takes no properties but Delta's own; ours are kept with the table's name.
            own = {key: value for key, value in statement.spec.properties.items() if not _is_ours(key)}
            create_delta_table(location, replace(statement.spec, properties=own))
            return
        from lading.tables.iceberg.catalog import sqlite_catalog
        from lading.tables.iceberg.table import create_iceberg_table

        name = f"{database}.{statement.name.name}"
        table = create_iceberg_table(sqlite_catalog(self._home.path), name, statement.spec, location=location)
        table.close()


def _is_ours(key: str) -> bool:
    return key.startswith("lading.") or key == "comment"
