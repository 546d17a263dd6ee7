"""Catalogs that others keep, by name: what is kept of them, and opening them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from lading.clock import Clock
from lading.deferred import deferred
from lading.errors import ConfigError, ConflictError
from lading.model.catalog import CatalogAccess
from lading.model.names import INTERNAL, split_key
from lading.service.catalog.definitions import CatalogDefinition, access_of, read_definition
from lading.service.catalog.file_catalogs import FileCatalogs
from lading.service.catalog.reach import is_reach
from lading.service.home import Home
from lading.service.security.endpoints import Endpoints, catalog_subject
from lading.service.security.vault import Vault, open_secrets, resolve_properties, seal_secrets
from lading.sql.statements.catalogs import AlterCatalog, CreateCatalog
from lading.sql.statements.tables import CreateTable
from lading.sql.syntax.masking import drop_secrets
from lading.store.catalogs import no_catalog
from lading.store.protocols import MetadataStore
from lading.store.records import CatalogEntry
from lading.tables.catalog_namespaces import CatalogNamespaces

if TYPE_CHECKING:
    from lading.tables.registry import kind_in_catalogs, kind_of_statement, open_namespaces
else:
    kind_in_catalogs = deferred("lading.tables.registry", "kind_in_catalogs")
    kind_of_statement = deferred("lading.tables.registry", "kind_of_statement")
    open_namespaces = deferred("lading.tables.registry", "open_namespaces")

_FIRST_ID = 1
"""Doris gives the internal catalog the number 0."""


class ExternalCatalogs:
    """The catalogs of an installation, but for its own."""

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
        self._store = store
        self._clock = clock
        self._vault = vault
        self._endpoints = endpoints
        self._of_file = of_file or FileCatalogs()

    def entries(self) -> list[CatalogEntry]:
        """All of them by name."""
        found = [*self._store.list_catalogs(), *self._of_file.entries.values()]
        return sorted(found, key=lambda entry: entry.name)

    def entry(self, name: str) -> CatalogEntry:
        """What is known of a catalog. Raises NotFoundError."""
        found = self._of_file.entries.get(name) or self._store.find_catalog(name)
        if found is None:
            raise no_catalog(name)
        return found

    def has(self, name: str) -> bool:
        """Whether there is such a catalog of others."""
        return name in self._of_file.entries or self._store.find_catalog(name) is not None

    def require(self, name: str) -> None:
        """Refuse a catalog that is not there."""
        if name != INTERNAL:
            self.entry(name)

    def definition(self, name: str) -> CatalogDefinition:
        """The whole definition of a catalog, with its secrets; references to secrets stay."""
        return read_definition(self._whole(self.entry(name)))

    def create(self, statement: CreateCatalog) -> None:
        """CREATE CATALOG: it is asked for its databases first. One that does not answer is not made.

        1. seal the secrets. Dies here: secrets of a catalog that is not there, which nobody reads.
        2. keep the catalog.
        """
        if self.has(statement.name):
            if statement.if_not_exists:
                return
            self._of_file.refuse(statement.name, "made")
            msg = f"Catalog {statement.name} exists already"
            raise ConflictError(msg, code="CatalogExists", left="It was not touched.", todo="Choose another name.")
        found = read_definition(statement.properties)
        self._try(statement.name, found)
        now = self._clock.now()
        numbers = [entry.catalog_id for entry in self._store.list_catalogs()]
        entry = CatalogEntry(
            name=statement.name,
            catalog_id=max(numbers, default=_FIRST_ID - 1) + 1,
            properties=drop_secrets(statement.properties),
            comment=statement.comment or "",
            created_at=now,
            changed_at=now,
        )
        self._seal(entry, statement.properties)
        self._endpoints.forget(catalog_subject(statement.name))
        self._endpoints.allow(catalog_subject(statement.name), found.hosts)
        self._store.create_catalog(entry)

    def alter(self, statement: AlterCatalog) -> None:
        """ALTER CATALOG. New properties are tried first; those that are not named stay. Open tables keep the old ones
        until they are opened again.

        The new secrets and hosts are kept before the entry, and none of the old ones is left out: dies in between, and
        the catalog has the old properties with new keys, as when the statement is run again.
        """
        self._of_file.refuse(statement.name, "altered")
        if statement.new_name is not None:
            self._of_file.refuse(statement.new_name, "made")
        entry = self.entry(statement.name)
        changed = replace(entry, changed_at=self._clock.now())
        if statement.comment is not None:
            changed = replace(changed, comment=statement.comment)
        if statement.properties is not None:
            whole = {**self._whole(entry), **statement.properties}
            found = read_definition(whole)
            self._try(statement.name, found)
            self._seal(entry, whole)
            self._endpoints.allow(catalog_subject(statement.name), found.hosts)
            changed = replace(changed, properties=drop_secrets(whole))
        if statement.new_name is not None:
            # Dies before the last step: secrets and hosts of a name that is not there, which nobody reads.
            found = read_definition(self._whole(entry))
            changed = replace(changed, name=statement.new_name)
            if self._store.find_catalog(statement.new_name) is None:
                self._seal(changed, found.properties)
                self._endpoints.forget(catalog_subject(statement.new_name))
                self._endpoints.allow(catalog_subject(statement.new_name), found.hosts)
        self._store.save_catalog(changed, old_name=statement.name)
        if statement.new_name is not None:
            self._forget(statement.name)

    def drop(self, name: str) -> None:
        """Forget a catalog. Nothing in it is touched."""
        self._of_file.refuse(name, "dropped")
        self.entry(name)
        self._store.drop_catalog(name)
        # Dies before this: secrets of a catalog that is not there, which nobody reads.
        self._forget(name)

    def access(self, name: str) -> CatalogAccess:
        """How a catalog is reached. References to secrets are followed, and its hosts are checked, each time."""
        return self._access(name, self.definition(name), is_new=False)

    @contextmanager
    def namespaces(self, name: str) -> Iterator[CatalogNamespaces]:
        """What a catalog has."""
        with closing(open_namespaces(self.access(name))) as opened:
            yield opened

    @contextmanager
    def database(self, key: str) -> Iterator[tuple[CatalogNamespaces, str]]:
        """What the catalog of a database has, and how the database is called there."""
        catalog, namespace = split_key(key)
        with self.namespaces(catalog) as opened:
            yield opened, namespace

    def _access(self, name: str, found: CatalogDefinition, *, is_new: bool) -> CatalogAccess:
        resolved = resolve_properties(found.properties, home=self._home.path)
        # Who writes the file of an installation may name any host.
        trusted = found.hosts if is_new or name in self._of_file.entries else ()
        rules = self._endpoints.rules_for(catalog_subject(name), found.hosts, trusted=trusted)
        return access_of(name, found, resolved, rules)

    def _try(self, name: str, found: CatalogDefinition) -> None:
        with closing(open_namespaces(self._access(name, found, is_new=True))) as namespaces:
            namespaces.databases()

    def _whole(self, entry: CatalogEntry) -> dict[str, str]:
        if entry.name in self._of_file.entries:
            return dict(self._of_file.properties[entry.name])
        kept = self._store.read_setting(_secret_key(entry.name))
        secrets = open_secrets(self._vault, kept, job=f"catalog {entry.name}") if kept else {}
        return {**entry.properties, **secrets}

    def _seal(self, entry: CatalogEntry, whole: Mapping[str, str]) -> None:
        secrets = {name: value for name, value in whole.items() if name not in drop_secrets(whole)}
        self._store.write_setting(_secret_key(entry.name), seal_secrets(self._vault, secrets) if secrets else "")

    def _forget(self, name: str) -> None:
        self._store.write_setting(_secret_key(name), "")
        self._endpoints.forget(catalog_subject(name))


def _secret_key(name: str) -> str:
    return f"catalog/{name}"


def check_external_table(statement: CreateTable, database: str) -> None:
    """Refuse what a table of another catalog cannot have."""
    kind, own = kind_of_statement(statement), [key for key in statement.properties if is_reach(key)]
    if kind is not kind_in_catalogs() or statement.location is not None or own:
        what = f"USING {kind.name}" if kind is not kind_in_catalogs() else own[0] if own else "LOCATION"
        msg = f"A table of catalog {split_key(database)[0]} cannot have {what}"
        todo = "Write USING iceberg without it: the catalog says where tables are, and how they are reached."
        raise ConfigError(msg, left="Nothing was made.", todo=todo)
