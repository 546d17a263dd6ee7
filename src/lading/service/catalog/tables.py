"""Tables by name: making, opening and dropping them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lading.clock import Clock
from lading.deferred import deferred
from lading.errors import ConfigError, ConflictError, LadingError, TableNotFoundError
from lading.model.names import INTERNAL, database_key, is_external, split_key, split_table
from lading.model.s3_access import S3Access
from lading.net.addresses import AddressRules
from lading.service.catalog.adoption import adopted_table, check_free
from lading.service.catalog.external import ExternalCatalogs, check_external_table
from lading.service.catalog.file_catalogs import FileCatalogs
from lading.service.catalog.missing import check_dots, no_table
from lading.service.catalog.reach import is_reach, reach_key
from lading.service.home import Home
from lading.service.security.endpoints import Endpoints, endpoints_of, table_subject
from lading.service.security.vault import Vault, open_secrets, resolve_properties, seal_secrets
from lading.sql.statements.parts import QualifiedName
from lading.sql.statements.tables import CreateTable
from lading.storage.homes import home_of
from lading.storage.store import open_store
from lading.store.protocols import Catalog, MetadataStore
from lading.store.records import DatabaseEntry, TableEntry
from lading.tables.base import LakeTable, NamedElsewhere
from lading.tables.bills import FOLDER
from lading.tables.kind import FoundTable, TablePlace
from lading.tables.manifest import TableCard, check_location, is_same_place, leave_card, local_path, settle_place

if TYPE_CHECKING:
    from lading.tables.registry import kind_in_catalogs, kind_of, kind_of_statement
else:
    kind_in_catalogs = deferred("lading.tables.registry", "kind_in_catalogs")
    kind_of = deferred("lading.tables.registry", "kind_of")
    kind_of_statement = deferred("lading.tables.registry", "kind_of_statement")

_IF_LOST = "If the metadata store was lost: lading recover gives tables and jobs back to it."


class TableCatalog:
    """The tables of one home."""

    def __init__(
        self,
        home: Home,
        store: MetadataStore,
        clock: Clock,
        vault: Vault,
        endpoints: Endpoints,
        of_file: FileCatalogs | None = None,
    ) -> None:
        self._home = home
        self._shared_url = store.shared_url
        """The database where catalogs are kept that several services share."""
        self._store = store
        self._catalog: Catalog = store
        self._clock = clock
        self._vault = vault
        self._endpoints = endpoints
        self.external = ExternalCatalogs(home, store, clock, vault, endpoints, of_file)
        """Catalogs that others keep."""

    def create_table(self, statement: CreateTable, database: str) -> None:
        """CREATE TABLE. The table first, then its name: a kill in between leaves a table that can be made again.

        What such a kill left is taken as it is when it stands at the table's own place, is empty and was never
        written to, and has the same columns and partitions. Anything else that is there is somebody's.
        """
        name, kind = statement.name.name, kind_of_statement(statement)
        self.require_database(database)
        if is_external(database):
            self._create_external(statement, database)
            return
        if self._catalog.find_table(database, name) is not None:
            if statement.if_not_exists:
                return
            msg = f"Table {database}.{name} is already there"
            raise ConflictError(
                msg, code="TableExists", left="It was not touched.", todo="Choose another name, or drop it first."
            )
        location = self.new_place(statement, database)
        reach = {key: value for key, value in statement.properties.items() if is_reach(key)}
        rest = {key: value for key, value in statement.properties.items() if not is_reach(key)}
        statement = replace(statement, properties=rest)
        # Dies after this: keys for a table that has no name, which the next CREATE TABLE writes over.
        self.keep_reach(database, name, reach)
        if self._adopted(statement, database, location):
            return
        self._check_empty(statement, database, location)
        try:
            kind.create(self.table_place(database, name, location), statement.spec)
        except ConflictError as error:
            if not self.is_own_place(location, database, name) or not self._is_rest(statement, database, location):
                todo = f"{error.todo} {_IF_LOST}"
                raise ConflictError(error.what, code="TableExists", left=error.left, todo=todo) from error
        card = TableCard(
            database=database,
            name=name,
            format=kind.name,
            catalog=kind.catalog,
            spec=statement.spec,
            created_at=self._clock.now(),
        )
        # Dies after this: a table that knows its name, and a store that does not; `lading recover` would give it to it.
        leave_card(open_store(location, self.storage_options(database, name, location)), card)
        self.adopt(card, location)

    def _create_external(self, statement: CreateTable, database: str) -> None:
        """The catalog makes the table, at a place of its own choice; nothing of it is kept here, and no card."""
        check_external_table(statement, database)
        if statement.if_not_exists and self.has_table(database, statement.name.name):
            return
        place = self._named_place(f"{database}.{statement.name.name}", "")
        kind_of_statement(statement).create(place, statement.spec)

    def _adopted(self, statement: CreateTable, database: str, location: str) -> bool:
        """Give a table that is there already its name, when the statement is about one. Changes nothing in it.

        Dies before the last step: keys without a table, as in `create_table`. Refused: not even those are left.
        """
        name, kind = statement.name.name, kind_of_statement(statement)
        if statement.location is None or self.is_own_place(location, database, name):
            return False
        try:
            storage = open_store(location, self.storage_options(database, name, location))
            others = (entry.location for entry in self._catalog.list_tables())
            place = self.table_place(database, name, location, is_adopted=True)
            if adopted_table(statement, kind, location, others, storage, lambda: kind.open(place)) is None:
                return False
        except LadingError:
            self.keep_reach(database, name, {})
            raise
        spec = statement.spec if statement.columns else None
        card = TableCard(database=database, name=name, format=kind.name, spec=spec, created_at=self._clock.now())
        self.adopt(card, location, is_adopted=True)
        return True

    def _check_empty(self, statement: CreateTable, database: str, location: str) -> None:
        """Refuse a place that the statement named and another table has files at, also one of another format."""
        name, kind = statement.name.name, kind_of_statement(statement)
        if statement.location is None or self.is_own_place(location, database, name):
            return
        try:
            options = self.storage_options(database, name, location)
            others = (entry.location for entry in self._catalog.list_tables())
            # Also around it: a table may not name such places, but whether there is one may be looked at.
            check_free(kind, location, others, lambda place: open_store(place, replace(options, within=place)))
        except LadingError:
            self.keep_reach(database, name, {})
            raise

    def adopt(self, card: TableCard, location: str, *, is_adopted: bool = False) -> None:
        """Give the table at a place its name."""
        entry = TableEntry(
            database=card.database,
            name=card.name,
            format=card.format,
            location=location,
            catalog=card.catalog,
            spec=card.spec,
            is_adopted=is_adopted,
            created_at=card.created_at,
        )
        self._catalog.create_table(entry)

    def keep_reach(self, database: str, name: str, reach: Mapping[str, str]) -> None:
        """Keep how the files of a table are reached, sealed."""
        self._store.write_setting(reach_key(database, name), seal_secrets(self._vault, reach) if reach else "")

    def options_for(self, reach: Mapping[str, str], *, is_trusted: bool = True) -> S3Access:
        """How files are reached with properties of the owner of the home, or of others. References to secrets are
        followed."""
        named = endpoints_of(reach)
        return self._with_rules(reach, self._endpoints.rules_for("", named, trusted=named if is_trusted else ()))

    def _with_rules(self, reach: Mapping[str, str], rules: AddressRules) -> S3Access:
        options = S3Access.from_properties(resolve_properties(reach, home=self._home.path))
        return replace(options, addresses=rules)

    def open_table(self, database: str, name: str) -> LakeTable:
        """The table of a name."""
        if is_external(database):
            check_dots(database, name)
            return kind_in_catalogs().open(self._named_place(f"{database}.{name}", ""))
        entry = self.entry(database, name)
        place = self.table_place(database, name, entry.location, is_adopted=entry.is_adopted)
        return kind_of(entry.format).open(place)

    def find_table(
        self, card: TableCard, location: str, reach: Mapping[str, str]
    ) -> AbstractContextManager[FoundTable]:
        """A table that may have no name here yet. Changes nothing.

        Raises ConfigError when the table of that name is at another place.
        """
        options = replace(self.options_for(reach), within=location)
        name = f"{card.database}.{card.name}"
        return kind_of(card.format).find(self._named_place(name, location, options))

    def table_place(self, database: str, name: str, location: str, *, is_adopted: bool = False) -> TablePlace:
        options = self.storage_options(database, name, location)
        return replace(self._named_place(f"{database}.{name}", location, options), is_adopted=is_adopted)

    def _named_place(self, name: str, location: str, options: S3Access = S3Access()) -> TablePlace:
        home, url = self._home.path, self._shared_url
        database, _ = split_table(name)
        catalog = self.external.access(split_key(database)[0]) if is_external(database) else None
        return TablePlace(home=home, name=name, location=location, options=options, catalog=catalog, catalog_url=url)

    def storage_options(self, database: str, name: str, location: str | None = None) -> S3Access:
        """How the files of a table are reached. References to secrets are followed each time.

        `location` is for a table that has no name yet.
        """
        if is_external(database):
            return self.open_table(database, name).writer_spec().options
        kept = self._store.read_setting(reach_key(database, name))
        reach = open_secrets(self._vault, kept, job=f"{database}.{name}") if kept else {}
        rules = self._endpoints.rules_for(table_subject(database, name), endpoints_of(reach))
        place = location if location is not None else self.entry(database, name).location
        return replace(self._with_rules(reach, rules), within=place)

    def entry(self, database: str, name: str) -> TableEntry:
        """What is known of a table by its name. Of a table of another catalog, that catalog knows the rest."""
        if is_external(database):
            at = self._clock.now()
            return TableEntry(database=database, name=name, format=kind_in_catalogs().name, location="", created_at=at)
        entry = self._catalog.find_table(database, name)
        if entry is None:
            self.require_database(database)
            raise no_table(database, name)
        return entry

    def require_table(self, database: str, name: str) -> TableEntry:
        """The same of a table that is there, which the catalog of others is asked. Raises TableNotFoundError."""
        if is_external(database) and not self.has_table(database, name):
            raise no_table(database, name)
        return self.entry(database, name)

    def has_table(self, database: str, name: str) -> bool:
        """Whether a table is there. The catalog of others is asked."""
        if not is_external(database):
            return self._catalog.find_table(database, name) is not None
        check_dots(database, name)
        with self.external.database(database) as (namespaces, namespace):
            return namespaces.has_table(namespace, name)

    def incarnation(self, database: str, name: str) -> str:
        """Tells a table from another one that had its name before."""
        if is_external(database) and isinstance(lake := self.open_table(database, name), NamedElsewhere):
            return lake.incarnation()
        return self.entry(database, name).created_at.isoformat()

    def drop_table(self, name: QualifiedName, database: str, *, if_exists: bool, purge: bool = False) -> None:
        """DROP TABLE: the name first, then the files, when they are the table's own, at its place in the warehouse.

        PURGE deletes the files that the table knows, at a place that the statement named or in a catalog of others,
        before the name: killed in between, the statement may be run again.
        """
        if if_exists and not self.has_table(database, name.name):
            return
        if is_external(database):
            self._drop_external(database, name.name, purge=purge)
            return
        entry = self.entry(database, name.name)
        kind, place = kind_of(entry.format), self.table_place(database, name.name, entry.location)
        is_own = self.is_own_place(entry.location, database, name.name)
        if purge and not is_own:
            kind.purge(place)
        is_deleted = is_own and not kind.shares_files(place)
        self._catalog.drop_table(database, name.name)
        kind.drop(place)
        if is_deleted:
            shutil.rmtree(self._own_place(database, name.name), ignore_errors=True)

    def _drop_external(self, database: str, name: str, *, purge: bool) -> None:
        """The catalog knows nothing of the bills beside the data: with PURGE they go last.

        Dies before that: bills of a table that is not there, which nobody reads.
        """
        storage = self.open_table(database, name).bills.storage if purge else None
        with self.external.database(database) as (namespaces, namespace):
            namespaces.drop_table(namespace, name, purge=purge)
        if storage is not None:
            storage.delete(list(storage.keys(f"{FOLDER}/")))

    def create_database(self, name: str, *, if_not_exists: bool) -> None:
        if if_not_exists and self.has_database(name):
            return
        if is_external(name):
            with self.external.database(name) as (namespaces, namespace):
                namespaces.create_database(namespace)
            return
        self._catalog.create_database(DatabaseEntry(name=name, created_at=self._clock.now()))

    def has_database(self, name: str) -> bool:
        """Whether a database is there."""
        if is_external(name):
            with self.external.database(name) as (namespaces, namespace):
                return bool(namespace) and namespaces.has_database(namespace)
        return any(entry.name == name for entry in self._catalog.list_databases())

    def drop_database(self, name: str) -> None:
        """Forget a database. Raises ConflictError while it has tables."""
        if not is_external(name):
            self._catalog.drop_database(name)
            return
        with self.external.database(name) as (namespaces, namespace):
            namespaces.drop_database(namespace)

    def databases(self, catalog: str) -> list[str]:
        """The databases of a catalog, each with its catalog."""
        if catalog == INTERNAL:
            return [entry.name for entry in self._catalog.list_databases()]
        with self.external.namespaces(catalog) as namespaces:
            return [database_key(catalog, name) for name in namespaces.databases()]

    def tables(self, database: str) -> list[str]:
        """The names of the tables of a database."""
        if not is_external(database):
            return [entry.name for entry in self._catalog.list_tables(database)]
        with self.external.database(database) as (namespaces, namespace):
            return namespaces.tables(namespace)

    def require_database(self, name: str) -> None:
        """Refuse a database that is not there."""
        catalog, namespace = split_key(name)
        self.external.require(catalog)
        if not namespace:
            msg = f"No database of catalog {catalog} is in use"
            todo = "USE one, or write it before the name of the table: db.table."
            raise TableNotFoundError(msg, code="DatabaseNotFound", left="Nothing was changed.", todo=todo)
        if not self.has_database(name):
            msg = f"Unknown database '{name}'"
            todo = f"CREATE DATABASE {name} first."
            raise TableNotFoundError(msg, code="DatabaseNotFound", left="Nothing was changed.", todo=todo)

    def _own_place(self, database: str, name: str) -> Path:
        return self._home.warehouse / database / name

    def is_own_place(self, location: str, database: str, name: str) -> bool:
        """Whether a table is where it is put when the statement does not say."""
        place = local_path(location)
        return place is not None and place == self._own_place(database, name).resolve()

    def new_place(self, statement: CreateTable, database: str) -> str:
        """Where CREATE TABLE would make a table. Refuses the places that it refuses, and makes nothing."""
        location = self._place(statement, database)
        self._check_not_lost(statement, database, location)
        return location

    def _place(self, statement: CreateTable, database: str) -> str:
        """A place in a home, or around this one, would be among the files of others."""
        own = self._own_place(database, statement.name.name)
        if statement.location is not None:
            check_location(statement.location)
        place = local_path(statement.location) if statement.location is not None else own.resolve()
        if statement.location is None or place == own.resolve():
            return str(own)
        if place is not None and (home_of(str(place)) or self._home.path.resolve().is_relative_to(place)):
            msg = f"A table cannot be at {statement.location}: that place is in a home folder of Lading, or around it"
            todo = "Leave LOCATION out, and it gets a place of its own there; or name one outside."
            raise ConfigError(msg, left="Nothing was made.", todo=todo)
        if any(is_same_place(other.location, statement.location) for other in self._catalog.list_tables()):
            # Not by its name: the user may not be allowed to see it.
            msg = f"At {statement.location} is already another table"
            raise ConflictError(msg, code="TableExists", left="It was not touched.", todo="Choose another location.")
        return settle_place(statement.location)

    def _check_not_lost(self, statement: CreateTable, database: str, location: str) -> None:
        """A catalog that was lost knows no table; a second one beside its old files would load everything twice."""
        name = statement.name.name
        if not self.is_own_place(location, database, name):
            return
        try:
            kind_of(statement.format).check_new(self._named_place(f"{database}.{name}", location))
        except ConflictError as error:
            raise ConflictError(
                error.what, code="TableExists", left=error.left, todo=f"{error.todo} {_IF_LOST}"
            ) from error

    def _is_rest(self, statement: CreateTable, database: str, location: str) -> bool:
        """Whether the table that is there is what a CREATE TABLE like this one left when it was killed."""
        kind = kind_of(statement.format)
        lake = kind.open(self.table_place(database, statement.name.name, location))
        parts = tuple((field.column, field.transform) for field in statement.spec.partition_by)
        return (
            local_path(lake.location) == local_path(location)
            and not lake.files()
            and lake.version() == 0
            and lake.schema() == kind.schema_of(statement.spec)
            and lake.writer_spec().partition_by == parts
        )
