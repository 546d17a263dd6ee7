"""Which catalog an Iceberg table lives in, and opening it."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.exc import OperationalError

from lading.errors import LadingError
from lading.model.s3_access import S3Access
from lading.tables.iceberg.errors import translated, wrong_setting
from lading.tables.iceberg.file_io_properties import FILE_IO, file_io_properties
from lading.tables.iceberg.guard import guard_catalog
from lading.tables.iceberg.postgres import (
    DATABASE,
    CatalogSpec,
    bring_along,
    is_postgres,
    postgres_catalog,
    use_shared_engine,
)
from lading.tables.iceberg.retention import keeps_all
from lading.tables.kind import TablePlace

BUSY_TIMEOUT_S = 60
"""How long SQLite waits for another writer's lock before it says `database is locked`."""

_HOME = "lading.home"


def sqlite_catalog(home: str | Path, *, name: str = "lading", warehouse: str = "") -> CatalogSpec:
    """One SQLite file in a folder, and a warehouse beside it unless another place is given."""
    folder = Path(home).absolute()
    database = URL.create("sqlite", database=str(folder / DATABASE), query={"timeout": str(BUSY_TIMEOUT_S)})
    return CatalogSpec(
        name=name,
        properties={
            "type": "sql",
            "uri": database.render_as_string(),
            "warehouse": warehouse or _local_uri(folder / "warehouse"),
            _HOME: str(folder),
        },
    )


def catalog_of(place: TablePlace) -> CatalogSpec:
    """The catalog that names a table: that of the home, or one in PostgreSQL that several services share."""
    if not place.catalog_url:
        return sqlite_catalog(place.home)
    spec = postgres_catalog(place.catalog_url, place.home)
    if (place.home / DATABASE).exists():
        bring_along(place, spec)
    return spec


def _local_uri(folder: Path) -> str:
    # PyIceberg does not unquote: in a URI it would take the rest of such a path for a query, and a bare path whole.
    return str(folder) if set("?#") & set(str(folder)) else f"file://{folder}"


def open_catalog(spec: CatalogSpec, options: S3Access) -> Catalog:
    """Open a catalog whose files are reached with these options."""
    properties = {"py-io-impl": FILE_IO, **file_io_properties(options), **spec.properties}
    with translated(what := f"catalog {spec.name}"):
        try:
            catalog = load_catalog(spec.name, **properties)
        except OperationalError as error:
            if "already exists" not in str(error):
                raise
            # Another process made the catalog's own tables at the same moment; they are there now.
            catalog = load_catalog(spec.name, **properties)
        except ValueError as error:
            raise wrong_setting(what, error) from error
    if is_postgres(spec):
        catalog = use_shared_engine(catalog, spec)
    elif isinstance(catalog, SqlCatalog):
        event.listen(catalog.engine, "checkin", _end_transaction)
    return guard_catalog(catalog, options)


def _end_transaction(connection: Any, _record: object) -> None:
    """Roll back what a connection that goes back to the pool has left open.

    When SQLite refuses a COMMIT because of a reader's lock, SQLAlchemy takes the transaction for ended and puts the
    connection back with it still open. The next question through that connection would see the commit as landed,
    which nobody else does, and everybody else would be locked out.
    """
    if connection is not None and getattr(connection, "in_transaction", False):
        connection.rollback()


def make_home(spec: CatalogSpec) -> None:
    """Make the folder of a SQLite catalog. Only for making tables: opening one must not leave an empty catalog."""
    if home := spec.properties.get(_HOME):
        with translated(f"catalog {spec.name}"):
            Path(home).mkdir(parents=True, exist_ok=True)
            # Before SQLite does, which would let others read it.
            os.close(os.open(Path(home) / DATABASE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def ensure_namespace(catalog: Catalog, identifier: str) -> None:
    """Make the namespace of a table, and those above it, unless they are there."""
    parts = catalog.namespace_from(identifier)
    for depth in range(1, len(parts) + 1):
        if not catalog.namespace_exists(parts[:depth]):
            try:
                catalog.create_namespace(parts[:depth])
            except NamespaceAlreadyExistsError:
                continue


def drop_table(spec: CatalogSpec, identifier: str) -> None:
    """Take a table's name out of the catalog. Its files stay."""
    catalog = open_catalog(spec, S3Access())
    with translated(f"table {identifier}"):
        catalog.drop_table(identifier)
    catalog.close()


def shares_files(spec: CatalogSpec, identifier: str, options: S3Access) -> bool:
    """Whether a table says so. One that cannot be read says nothing."""
    with closing(open_catalog(spec, options)) as catalog:
        try:
            with translated(f"table {identifier}"):
                return bool(keeps_all(catalog.load_table(identifier).metadata.properties))
        except LadingError:
            return False
