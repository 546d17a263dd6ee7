"""What a catalog that others keep has."""

from __future__ import annotations

from pyiceberg.exceptions import NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchNamespaceError

from lading.errors import ConflictError, TableError
from lading.model.catalog import CatalogAccess
from lading.tables.iceberg.errors import translated
from lading.tables.iceberg.external import open_external
from lading.tables.iceberg.retention import keeps_all

_NOTHING = "Nothing was changed."


def identifier_of(namespace: str, table: str) -> tuple[str, ...]:
    """A table as PyIceberg names it. Dots part the levels of a namespace."""
    return (*namespace.split("."), table)


class IcebergNamespaces:
    """What a catalog has: namespaces and tables. Every question goes to the catalog."""

    def __init__(self, access: CatalogAccess) -> None:
        self._what = f"catalog {access.name}"
        self._catalog = open_external(access)

    def databases(self) -> list[str]:
        """Its namespaces, but for those within others."""
        with translated(self._what):
            return sorted(".".join(each) for each in self._catalog.list_namespaces())

    def has_database(self, name: str) -> bool:
        with translated(self._what):
            try:
                self._catalog.load_namespace_properties(tuple(name.split(".")))
            except NoSuchNamespaceError:
                return False
        return True

    def tables(self, database: str) -> list[str]:
        """Its tables. Those of a catalog that keeps others, too, are not Iceberg's and are left out."""
        with translated(self._what):
            return sorted(str(each[-1]) for each in self._catalog.list_tables(tuple(database.split("."))))

    def has_table(self, database: str, name: str) -> bool:
        with translated(self._what):
            return bool(self._catalog.table_exists(identifier_of(database, name)))

    def create_database(self, name: str) -> None:
        """Raises ConflictError."""
        with translated(self._what):
            try:
                self._catalog.create_namespace(tuple(name.split(".")))
            except NamespaceAlreadyExistsError as error:
                msg = f"Database {name} exists already in the {self._what}"
                raise ConflictError(msg, code="DatabaseExists", left=_NOTHING, todo="Choose another name.") from error

    def drop_database(self, name: str) -> None:
        """Raises ConflictError while it has tables."""
        with translated(self._what):
            try:
                self._catalog.drop_namespace(tuple(name.split(".")))
            except NamespaceNotEmptyError as error:
                msg = f"Database {name} of the {self._what} is not empty"
                raise ConflictError(msg, code="DatabaseInUse", left=_NOTHING, todo="Drop its tables first.") from error

    def drop_table(self, database: str, name: str, *, purge: bool) -> None:
        """Take the name out of the catalog. With `purge` the files go, too: the catalog, or PyIceberg, deletes them.

        Raises TableError with `purge` when the table says that its files may be those of other tables.
        """
        with translated(f"table {database}.{name}"):
            if purge:
                table = self._catalog.load_table(identifier_of(database, name))
                if why := keeps_all(table.metadata.properties):
                    msg = f"PURGE is refused for the table {database}.{name}: {why}"
                    raise TableError(msg, left=_NOTHING, todo="DROP it without PURGE: the name goes, the files stay.")
                self._catalog.purge_table(identifier_of(database, name))
            else:
                self._catalog.drop_table(identifier_of(database, name))

    def close(self) -> None:
        self._catalog.close()
