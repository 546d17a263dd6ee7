"""Tables by name: making, opening and dropping them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from lading.clock import Clock
from lading.errors import ConfigError, TableExistsError, TableNotFoundError
from lading.ids import JobId
from lading.model.bill import Head
from lading.net.addresses import AddressRules
from lading.service.home import Home
from lading.service.security.endpoints import Endpoints, endpoints_of, table_subject
from lading.service.security.vault import Vault, open_secrets, resolve_properties, seal_secrets
from lading.sources.homes import home_of
from lading.sql.statements.parts import QualifiedName
from lading.sql.statements.tables import CreateTable
from lading.store.protocols import Catalog, MetadataStore
from lading.store.records import DatabaseEntry, TableEntry
from lading.tables.base import LakeTable
from lading.tables.bills import StoredBills
from lading.tables.manifest import TableCard, is_same_place, leave_card, local_path, settle_place
from lading.tables.storage import StorageOptions, open_storage
from lading.tables.types import arrow_schema

if TYPE_CHECKING:
    from lading.tables.iceberg.register import LostTable

CATALOG = "lading"
_IF_LOST = "If the metadata store was lost: lading recover gives tables and jobs back to it."
_WIDER = {pa.int8(): pa.int32(), pa.int16(): pa.int32()}


class Sight(Protocol):
    """What can be seen of a table, whether it has a name here or not."""

    @property
    def bills(self) -> StoredBills: ...

    def read_head(self, job_id: JobId) -> Head | None: ...

    def job_ids(self) -> set[JobId]: ...


class TableCatalog:
    """The tables of one home."""

    def __init__(self, home: Home, store: MetadataStore, clock: Clock, vault: Vault, endpoints: Endpoints) -> None:
        self._home = home
        self._store = store
        self._catalog: Catalog = store
        self._clock = clock
        self._vault = vault
        self._endpoints = endpoints

    def create_table(self, statement: CreateTable, database: str) -> None:
        """CREATE TABLE. The table first, then its name: a kill in between leaves a table that can be made again.

        What such a kill left is taken as it is when it stands at the table's own place, is empty and was never
        written to, and has the same columns and partitions. Anything else that is there is somebody's.
        """
        name = statement.name.name
        self.require_database(database)
        if self._catalog.find_table(database, name) is not None:
            if statement.if_not_exists:
                return
            msg = f"Table {database}.{name} is already there"
            raise TableExistsError(msg, left="It was not touched.", todo="Choose another name, or drop it first.")
        location = self._place(statement, database)
        self._check_not_lost(statement, database, location)
        reach = {key: value for key, value in statement.properties.items() if _is_reach(key)}
        rest = {key: value for key, value in statement.properties.items() if not _is_reach(key)}
        statement = replace(statement, properties=rest)
        # Dies after this: keys for a table that has no name, which the next CREATE TABLE writes over.
        self.keep_reach(database, name, reach)
        try:
            self._make(statement, database, location, self.storage_options(database, name, location))
        except TableExistsError as error:
            if not self._is_own_place(location, database, name) or not self._is_rest(statement, database, location):
                todo = f"{error.todo} {_IF_LOST}"
                raise TableExistsError(error.what, left=error.left, todo=todo) from error
        card = TableCard(
            database=database,
            name=name,
            format=statement.format,
            catalog=CATALOG if statement.format == "iceberg" else "",
            spec=statement.spec,
            created_at=self._clock.now(),
        )
        # Dies after this: a table that knows its name, and a store that does not; `lading recover` would give it to it.
        leave_card(open_storage(location, self.storage_options(database, name, location)), card)
        self.adopt(card, location)

    def adopt(self, card: TableCard, location: str) -> None:
        """Give the table at a place its name."""
        entry = TableEntry(
            database=card.database,
            name=card.name,
            format=card.format,
            location=location,
            catalog=card.catalog,
            spec=card.spec,
            created_at=card.created_at,
        )
        self._catalog.create_table(entry)

    def keep_reach(self, database: str, name: str, reach: Mapping[str, str]) -> None:
        """Keep how the files of a table are reached, sealed."""
        self._store.write_setting(_reach_key(database, name), seal_secrets(self._vault, reach) if reach else "")

    def options_for(self, reach: Mapping[str, str]) -> StorageOptions:
        """How files are reached with properties of the owner of the home. References to secrets are followed."""
        named = endpoints_of(reach)
        return self._with_rules(reach, self._endpoints.rules_for("", named, trusted=named))

    def _with_rules(self, reach: Mapping[str, str], rules: AddressRules) -> StorageOptions:
        options = StorageOptions.from_properties(resolve_properties(reach, home=self._home.path))
        return replace(options, addresses=rules)

    def open_table(self, database: str, name: str) -> LakeTable:
        """The table of a name."""
        entry = self.entry(database, name)
        return self._open(entry.format, entry.location, f"{database}.{name}", self.storage_options(database, name))

    @contextmanager
    def look_at(self, card: TableCard, location: str, reach: Mapping[str, str]) -> Iterator[Sight]:
        """A table that may have no name here yet; a LostTable when the catalog has forgotten it. Changes nothing.

        Raises ConfigError when the table of that name is at another place.
        """
        options = replace(self.options_for(reach), within=location)
        name = f"{card.database}.{card.name}"
        if card.format == "delta":
            yield self._open(card.format, location, name, options)
            return
        from lading.tables.iceberg.catalog import sqlite_catalog
        from lading.tables.iceberg.place import local_path as iceberg_path
        from lading.tables.iceberg.register import find_lost_table, is_in_catalog
        from lading.tables.iceberg.table import open_iceberg_table

        catalog = sqlite_catalog(self._home.path)
        # Not asked when it is not there: to ask would make it.
        if not (self._home.path / "catalog.db").exists() or not is_in_catalog(catalog, name, options):
            yield find_lost_table(location, options)
            return
        with closing(open_iceberg_table(catalog, name, options)) as lake:
            if not is_same_place(iceberg_path(lake.location), location):
                msg = f"The catalog has table {name} at {lake.location}, and not at {location}"
                todo = "Move the copy out of the way. Do not DROP the table: that would delete files."
                raise ConfigError(msg, left="Nothing was changed.", todo=todo)
            yield lake

    def give_back(self, card: TableCard, lost: LostTable, reach: Mapping[str, str]) -> None:
        """Have the catalog name an Iceberg table again."""
        from lading.tables.iceberg.catalog import sqlite_catalog
        from lading.tables.iceberg.register import register_iceberg_table

        name, options = f"{card.database}.{card.name}", self.options_for(reach)
        register_iceberg_table(sqlite_catalog(self._home.path), name, lost, options)

    def _open(self, form: str, location: str, name: str, options: StorageOptions) -> LakeTable:
        if form == "delta":
            from lading.tables.delta.create import open_delta_table

            return open_delta_table(location, options)
        from lading.tables.iceberg.catalog import sqlite_catalog
        from lading.tables.iceberg.table import open_iceberg_table

        return open_iceberg_table(sqlite_catalog(self._home.path), name, options)

    def storage_options(self, database: str, name: str, location: str | None = None) -> StorageOptions:
        """How the files of a table are reached. References to secrets are followed each time.

        `location` is for a table that has no name yet.
        """
        kept = self._store.read_setting(_reach_key(database, name))
        reach = open_secrets(self._vault, kept, job=f"{database}.{name}") if kept else {}
        rules = self._endpoints.rules_for(table_subject(database, name), endpoints_of(reach))
        place = location if location is not None else self.entry(database, name).location
        return replace(self._with_rules(reach, rules), within=place)

    def entry(self, database: str, name: str) -> TableEntry:
        """What is known of a table by its name."""
        entry = self._catalog.find_table(database, name)
        if entry is None:
            msg = f"Unknown table '{name}' in database '{database}'"
            raise TableNotFoundError(msg, left="Nothing was changed.", todo="See SHOW TABLES, or create it.")
        return entry

    def drop_table(self, name: QualifiedName, database: str, *, if_exists: bool) -> None:
        """DROP TABLE: the name first, then the files, when they are at the table's own place in the warehouse.

        A place that the statement named is never deleted: nobody knows what else is there.
        """
        found = self._catalog.find_table(database, name.name)
        if found is None and if_exists:
            return
        entry = self.entry(database, name.name)
        self._catalog.drop_table(database, name.name)
        if entry.format == "iceberg":
            from lading.tables.iceberg.catalog import drop_table, sqlite_catalog

            drop_table(sqlite_catalog(self._home.path), f"{database}.{name.name}")
        if self._is_own_place(entry.location, database, name.name):
            shutil.rmtree(self._own_place(database, name.name), ignore_errors=True)

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

    def _own_place(self, database: str, name: str) -> Path:
        return self._home.warehouse / database / name

    def _is_own_place(self, location: str, database: str, name: str) -> bool:
        place = local_path(location)
        return place is not None and place == self._own_place(database, name).resolve()

    def _place(self, statement: CreateTable, database: str) -> str:
        """Where a new table goes. A place in a home, or around this one, would be among the files of others."""
        own = self._own_place(database, statement.name.name)
        place = local_path(statement.location) if statement.location is not None else own.resolve()
        if statement.location is None or place == own.resolve():
            return str(own)
        if place is not None and (home_of(str(place)) or self._home.path.resolve().is_relative_to(place)):
            msg = f"A table cannot be at {statement.location}: that place is in a home folder of Lading, or around it"
            todo = "Leave LOCATION out, and it gets a place of its own there; or name one outside."
            raise ConfigError(msg, left="Nothing was made.", todo=todo)
        if any(is_same_place(other.location, statement.location) for other in self._catalog.list_tables()):
            # Not by its name: whoever asks may not be allowed to see it.
            msg = f"At {statement.location} is already another table"
            raise TableExistsError(msg, left="It was not touched.", todo="Choose another location.")
        return settle_place(statement.location)

    def _check_not_lost(self, statement: CreateTable, database: str, location: str) -> None:
        """A catalog that was lost knows no table; to make it anew beside its old files would load everything twice."""
        if statement.format != "iceberg" or not self._is_own_place(location, database, statement.name.name):
            return
        files = (Path(location) / "metadata").glob("*.metadata.json")
        if any(file.name.partition("-")[0].strip("0") for file in files):
            msg = f"There is already an Iceberg table at {location}"
            raise TableExistsError(msg, left="It was not touched.", todo=f"Move its files away. {_IF_LOST}")

    def _is_rest(self, statement: CreateTable, database: str, location: str) -> bool:
        """Whether the table that is there is what a CREATE TABLE like this one left when it was killed."""
        name = statement.name.name
        options = self.storage_options(database, name, location)
        lake = self._open(statement.format, location, f"{database}.{name}", options)
        wanted = arrow_schema(statement.spec)
        if statement.format == "iceberg":
            # Iceberg has no whole numbers of less than four bytes.
            wanted = pa.schema([field.with_type(_WIDER.get(field.type, field.type)) for field in wanted])
        parts = tuple((field.column, field.transform) for field in statement.spec.partition_by)
        return (
            local_path(lake.location) == local_path(location)
            and not lake.files()
            and lake.version() == 0
            and lake.schema() == wanted
            and lake.writer_spec().partition_by == parts
        )

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
