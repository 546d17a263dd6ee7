"""Names of tables with their catalog.

Wherever a table is named by two texts, its database and its own name, the first one is `db` for a database of this
installation and `catalog.db` for one of another catalog. Databases of the installation have no dot in their names, so
the two cannot be taken for each other, and what was kept before there were catalogs means what it meant.
"""

from __future__ import annotations

INTERNAL = "internal"
"""The catalog of the installation itself."""
ALL = "*"
"""In the place of a database: all that a catalog has. No database is called so."""


def database_key(catalog: str | None, database: str) -> str:
    """How a database is named together with its catalog. None: the catalog of the installation."""
    return database if catalog in (None, INTERNAL) else f"{catalog}.{database}"


def split_key(key: str) -> tuple[str, str]:
    """The catalog and the database. The namespaces of other catalogs may have dots, their catalogs have none."""
    catalog, dot, database = key.partition(".")
    return (catalog, database) if dot else (INTERNAL, key)


def split_table(name: str) -> tuple[str, str]:
    """The database, with its catalog, and the table of a whole name: `db.t` or `catalog.db.t`."""
    database, _, table = name.rpartition(".")
    return database, table


def is_external(key: str) -> bool:
    """Whether a database is one of another catalog."""
    return "." in key


def covers(place: str, key: str) -> bool:
    """Whether a place, a database or all databases of a catalog, has a database in it."""
    catalog, database = split_key(place)
    return place == key or (database == ALL and is_external(place) and split_key(key)[0] == catalog)
