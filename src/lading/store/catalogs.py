"""Catalogs that others keep."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select, update

from lading.errors import ConflictError, NotFoundError
from lading.store.bodies import parse_body, render_body
from lading.store.database import Database
from lading.store.records import CatalogEntry
from lading.store.schema import CATALOGS

_LEFT = "Nothing was changed."


class SqlCatalogs:
    """See `protocols.Catalogs`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_catalog(self, entry: CatalogEntry) -> None:
        """Keep a catalog. Raises ConflictError."""
        with self._database.write(f"Creating catalog {entry.name}") as connection:
            _check_free(connection, entry.name)
            if not self._database.insert_new(connection, CATALOGS, _columns(entry)):
                raise _taken(entry.name)

    def save_catalog(self, entry: CatalogEntry, *, old_name: str) -> None:
        """Keep a catalog that was changed, under its new name when it has one. Raises NotFoundError, ConflictError."""
        with self._database.write(f"Changing catalog {old_name}") as connection:
            if entry.name != old_name:
                _check_free(connection, entry.name)
            change = update(CATALOGS).where(CATALOGS.c.name == old_name).values(**_columns(entry))
            if connection.execute(change).rowcount != 1:
                raise no_catalog(old_name)

    def drop_catalog(self, name: str) -> None:
        """Forget a catalog. Raises NotFoundError."""
        with self._database.write(f"Dropping catalog {name}") as connection:
            if connection.execute(delete(CATALOGS).where(CATALOGS.c.name == name)).rowcount != 1:
                raise no_catalog(name)

    def find_catalog(self, name: str) -> CatalogEntry | None:
        """A catalog by its name, or None."""
        with self._database.read(f"Looking for catalog {name}") as connection:
            row = connection.execute(select(CATALOGS.c.body).where(CATALOGS.c.name == name)).first()
        return None if row is None else parse_body(CatalogEntry, row.body, where=f"Catalog {name}")

    def list_catalogs(self) -> list[CatalogEntry]:
        """All catalogs by name."""
        with self._database.read("Listing catalogs") as connection:
            rows = connection.execute(select(CATALOGS.c.name, CATALOGS.c.body).order_by(CATALOGS.c.name)).all()
        return [parse_body(CatalogEntry, row.body, where=f"Catalog {row.name}") for row in rows]


def no_catalog(name: str) -> NotFoundError:
    """The error for a catalog that is not there, in Doris' words."""
    msg = f"Unknown catalog '{name}'"
    return NotFoundError(msg, code="CatalogNotFound", left=_LEFT, todo="See SHOW CATALOGS.", name=name)


def _check_free(connection: Connection, name: str) -> None:
    if connection.execute(select(CATALOGS.c.name).where(CATALOGS.c.name == name)).first() is not None:
        raise _taken(name)


def _taken(name: str) -> ConflictError:
    msg = f"Catalog {name} exists already"
    return ConflictError(msg, code="CatalogExists", left=_LEFT, todo="Choose another name.", name=name)


def _columns(entry: CatalogEntry) -> dict[str, object]:
    return {"name": entry.name, "created_at": entry.created_at, "body": render_body(entry)}
