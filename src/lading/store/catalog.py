"""Names of databases and tables."""

from __future__ import annotations

from sqlalchemy import Connection, Select, delete, select

from lading.errors import ConflictError, NotFoundError, TableNotFoundError
from lading.store.bodies import parse_body, render_body
from lading.store.database import Database
from lading.store.records import DatabaseEntry, TableEntry
from lading.store.schema import DATABASES, JOBS, TABLES

_LEFT = "Nothing was changed."


class SqlCatalog:
    """See `protocols.Catalog`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_database(self, entry: DatabaseEntry) -> None:
        """Keep a database. Raises ConflictError."""
        row = {"name": entry.name, "created_at": entry.created_at, "body": render_body(entry)}
        with self._database.write(f"Creating database {entry.name}") as connection:
            if not self._database.insert_new(connection, DATABASES, row):
                msg = f"Database {entry.name} exists already"
                raise ConflictError(
                    msg, code="DatabaseExists", left=_LEFT, todo="Choose another name.", name=entry.name
                )

    def drop_database(self, name: str) -> None:
        """Forget a database. Raises NotFoundError, or ConflictError while it has tables or live jobs."""
        with self._database.write(f"Dropping database {name}") as connection:
            _expect_database(connection, name)
            tables = connection.execute(select(TABLES.c.name).where(TABLES.c.database == name).limit(1)).scalar()
            alive = (JOBS.c.database == name) & JOBS.c.live_key.is_not(None)
            job = connection.execute(select(JOBS.c.name).where(alive).limit(1)).scalar()
            if tables or job:
                what = f"table {tables}" if tables else f"job {job}"
                msg = f"Database {name} is not empty: it has {what}"
                raise ConflictError(
                    msg, code="DatabaseInUse", left=_LEFT, todo="Drop its tables and stop its jobs first.", name=name
                )
            connection.execute(delete(DATABASES).where(DATABASES.c.name == name))

    def list_databases(self) -> list[DatabaseEntry]:
        """All databases by name."""
        with self._database.read("Listing databases") as connection:
            rows = connection.execute(select(DATABASES.c.name, DATABASES.c.body).order_by(DATABASES.c.name)).all()
        return [parse_body(DatabaseEntry, row.body, where=f"Database {row.name}") for row in rows]

    def create_table(self, entry: TableEntry) -> None:
        """Keep the name of a table. Raises NotFoundError or ConflictError."""
        with self._database.write(f"Creating table {entry.database}.{entry.name}") as connection:
            _expect_database(connection, entry.database)
            if not self._database.insert_new(connection, TABLES, _columns(entry)):
                msg = f"Table {entry.database}.{entry.name} exists already"
                raise ConflictError(msg, code="TableExists", left=_LEFT, todo="Choose another name.", name=entry.name)

    def find_table(self, database: str, name: str) -> TableEntry | None:
        """A table by its name, or None."""
        with self._database.read(f"Looking for table {database}.{name}") as connection:
            row = connection.execute(_select_table(database, name)).first()
        return None if row is None else parse_body(TableEntry, row.body, where=f"Table {database}.{name}")

    def list_tables(self, database: str | None = None) -> list[TableEntry]:
        """Tables of one database, or of all, by name."""
        query = select(TABLES.c.name, TABLES.c.body).order_by(TABLES.c.database, TABLES.c.name)
        if database is not None:
            query = query.where(TABLES.c.database == database)
        with self._database.read("Listing tables") as connection:
            rows = connection.execute(query).all()
        return [parse_body(TableEntry, row.body, where=f"Table {row.name}") for row in rows]

    def drop_table(self, database: str, name: str) -> None:
        """Forget the name of a table; the table itself is not touched. Raises TableNotFoundError."""
        mine = (TABLES.c.database == database) & (TABLES.c.name == name)
        with self._database.write(f"Dropping table {database}.{name}") as connection:
            if connection.execute(delete(TABLES).where(mine)).rowcount != 1:
                raise _no_table(database, name)


def _columns(entry: TableEntry) -> dict[str, str]:
    return {
        "database": entry.database,
        "name": entry.name,
        "format": entry.format,
        "location": entry.location,
        "body": render_body(entry),
    }


def _select_table(database: str, name: str) -> Select[tuple[str]]:
    return select(TABLES.c.body).where(TABLES.c.database == database, TABLES.c.name == name)


def _expect_database(connection: Connection, name: str) -> None:
    if connection.execute(select(DATABASES.c.name).where(DATABASES.c.name == name)).first() is None:
        msg = f"There is no database {name}"
        raise NotFoundError(msg, code="DatabaseNotFound", left=_LEFT, todo="Create it first.", name=name)


def _no_table(database: str, name: str) -> TableNotFoundError:
    msg = f"There is no table {database}.{name}"
    return TableNotFoundError(msg, left=_LEFT, todo="Look at the list of tables.", database=database, name=name)
