"""Tables by name: making, opening and dropping them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from lading.clock import Clock
from lading.errors import TableExistsError, TableNotFoundError
from lading.service.home import Home
from lading.service.secrets import Vault, open_secrets, resolve_properties, seal_secrets
from lading.sql.parts import QualifiedName
from lading.sql.table_statements import CreateTable
from lading.store.protocols import Catalog, MetadataStore
from lading.store.records import DatabaseEntry, TableEntry
from lading.tables.base import LakeTable
from lading.tables.storage import StorageOptions

CATALOG = "lading"


class Shelf:
    """The tables of one home."""

    def __init__(self, home: Home, store: MetadataStore, clock: Clock, vault: Vault) -> None:
        self._home = home
        self._store = store
        self._catalog: Catalog = store
        self._clock = clock
        self._vault = vault

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
        reach = {key: value for key, value in statement.properties.items() if _is_reach(key)}
        rest = {key: value for key, value in statement.properties.items() if not _is_reach(key)}
        statement = replace(statement, properties=rest)
        # Dies after this: keys for a table that has no name, which the next CREATE TABLE writes over.
        self._store.write_setting(_reach_key(database, name), seal_secrets(self._vault, reach))
        self._make(statement, database, location, self._options(database, name))
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

            return open_delta_table(entry.location, self._options(database, name))
        from lading.tables.iceberg.catalog import sqlite_catalog
        from lading.tables.iceberg.table import open_iceberg_table

        options = self._options(database, name)
        return open_iceberg_table(sqlite_catalog(self._home.path), f"{database}.{name}", options)

    def _options(self, database: str, name: str) -> StorageOptions:
        """How the files of a table are reached. References to secrets are followed each time."""
        kept = self._store.read_setting(_reach_key(database, name))
        reach = open_secrets(self._vault, kept, job=f"{database}.{name}")
        return StorageOptions.from_properties(resolve_properties(reach, home=self._home.path))

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

    def _make(self, statement: CreateTable, database: str, location: str, options: StorageOptions) -> None:
        if statement.format == "delta":
            from lading.tables.delta.create import create_delta_table

            # delta-rs takes no properties but Delta's own; ours are kept with the table's name.
            own = {key: value for key, value in statement.spec.properties.items() if not _is_ours(key)}
            create_delta_table(location, replace(statement.spec, properties=own), options)
            return
        from lading.tables.iceberg.catalog import sqlite_catalog
        from lading.tables.iceberg.table import create_iceberg_table

        name = f"{database}.{statement.name.name}"
        catalog = sqlite_catalog(self._home.path)
        table = create_iceberg_table(catalog, name, statement.spec, location=location, options=options)
        table.close()


def _is_reach(key: str) -> bool:
    """Whether a property says how to reach the files, and not how the table is made."""
    return key.startswith("s3.") or key == "use_path_style"


def _reach_key(database: str, name: str) -> str:
    return f"reach/{database}.{name}"


def _is_ours(key: str) -> bool:
    return key.startswith("lading.") or key == "comment"
