"""A catalog in PostgreSQL, beside the metadata store: services that share the store share their Iceberg tables.

PyIceberg's catalog changes the place of a table's metadata by naming the one that it replaces, in one statement: two
services that commit at once cannot both win, as in SQLite.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError, ProgrammingError
from sqlalchemy.pool import NullPool

from lading.net.postgres import SILENCE_PLUGIN, connection_limits
from lading.tables.iceberg.errors import translated
from lading.tables.iceberg.place import local_path
from lading.tables.kind import TablePlace

DATABASE = "catalog.db"
"""The catalog of a home."""
_PREFIX = "postgresql"
_STATEMENT_MS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSpec:
    """A catalog as PyIceberg's `load_catalog(name, **properties)` takes it."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)


def postgres_catalog(url: str, home: str | Path, *, name: str = "lading") -> CatalogSpec:
    """A catalog in a database. Its own tables are made when an engine is opened, and not with each table."""
    warehouse = str(Path(home).absolute() / "warehouse")
    properties = {"type": "sql", "uri": with_limits(url), "warehouse": warehouse, "init_catalog_tables": "false"}
    return CatalogSpec(name=name, properties=properties)


def with_limits(url: str) -> str:
    """A database that gives no answer is an error in the end, also what PyIceberg asks with an engine of its own."""
    parsed = make_url(url)
    options = parsed.query.get("options", "")
    limits = (
        f"{options if isinstance(options, str) else ' '.join(options)} -c statement_timeout={_STATEMENT_MS}".strip()
    )
    more = {**connection_limits(parsed.query), "options": limits, "plugin": SILENCE_PLUGIN}
    return parsed.update_query_dict(more).render_as_string(hide_password=False)


def is_postgres(spec: CatalogSpec) -> bool:
    return spec.properties.get("uri", "").startswith(_PREFIX)


def use_shared_engine(catalog: Catalog, spec: CatalogSpec) -> Catalog:
    """Every open table has a catalog of its own. None of them keeps a connection: a thousand tables would need as many,
    and none outlives a restart of the database."""
    if isinstance(catalog, SqlCatalog):
        catalog.engine.dispose()
        with translated(f"catalog {spec.name}"):
            catalog.engine = _shared_engine(spec.properties["uri"])
    return catalog


@cache
def _shared_engine(url: str) -> Engine:
    engine = create_engine(url, poolclass=NullPool)
    try:
        IcebergTables.metadata.create_all(engine)
    except (IntegrityError, ProgrammingError):
        # Another service made them at the same moment; they are there now.
        IcebergTables.metadata.create_all(engine)
    return engine


def bring_along(place: TablePlace, spec: CatalogSpec) -> None:
    """A table that was made while its home had a catalog of its own is named by the shared one from now on.

    Dies between the two steps: both name it, the shared one is asked, and the next time does the second step.
    """
    database, _, name = place.name.rpartition(".")
    row = {"catalog_name": spec.name, "table_namespace": database, "table_name": name}
    where = "WHERE catalog_name = :catalog_name AND table_namespace = :table_namespace AND table_name = :table_name"
    with translated(f"table {place.name}"), closing(sqlite3.connect(place.home / DATABASE)) as own:
        try:
            found = own.execute(f"SELECT metadata_location FROM iceberg_tables {where}", row).fetchone()  # noqa: S608
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            found = None  # A process died when it had made the file, and nothing in it.
        if found is None or not local_path(found[0]).startswith(f"{local_path(place.location).rstrip('/')}/"):
            return
        with _shared_engine(spec.properties["uri"]).begin() as shared:
            known = insert(IcebergTables).values(**row, metadata_location=found[0], iceberg_type="TABLE")
            shared.execute(known.on_conflict_do_nothing())
        with own:
            own.execute(f"DELETE FROM iceberg_tables {where}", row)  # noqa: S608 - no text of others
