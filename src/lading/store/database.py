"""The connection to SQLite or PostgreSQL. Foreign errors become Lading's here and nowhere else."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, make_url
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from lading.errors import ConfigError, LadingError, RecordError, StoreError
from lading.net.postgres import connection_limits, end_silence

BUSY_TIMEOUT_MS = 10_000
MAX_WAL_TRIES = 50
STATEMENT_TIMEOUT_MS = 30_000
_VAGUE = ("disk I/O error", "unable to open database file")
"""What SQLite says of many faults of a disk."""


class Database:
    """Short transactions on one database; safe to use from many threads."""

    def __init__(self, url: str) -> None:
        parsed = parse_url(url)
        self.shown = parsed.render_as_string(hide_password=True)
        """For messages: without the password."""
        self.shared_url = "" if parsed.drivername == "sqlite" else parsed.render_as_string(hide_password=False)
        """The whole of it, for a database that is not a file. Empty for SQLite."""
        self._engine = _open_engine(parsed)
        self._writer = self._engine.execution_options(lading_writes=True)
        self._insert = _insert_of(self._engine)

    @contextmanager
    def read(self, what: str) -> Iterator[Connection]:
        """A transaction that only reads; all of it sees one state in SQLite."""
        with self._translated(what), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self, what: str) -> Iterator[Connection]:
        """A transaction that writes: all of it or nothing, also when the process dies inside."""
        with self._translated(what), self._writer.begin() as connection:
            yield connection

    def insert_new(self, connection: Connection, table: Table, values: Mapping[str, Any]) -> bool:
        """Insert a row unless its key, or another unique value of it, is taken. Says whether it was inserted."""
        make = self._insert
        statement = make(table).values(dict(values)).on_conflict_do_nothing().returning(*table.primary_key)
        return connection.execute(statement).first() is not None

    def put(self, connection: Connection, table: Table, values: Mapping[str, Any]) -> None:
        """Insert a row, or replace the one with the same primary key."""
        make = self._insert
        keys = [column.name for column in table.primary_key]
        rest = {name: value for name, value in values.items() if name not in keys}
        statement = make(table).values(dict(values))
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=rest))

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        # What happens while a new connection is prepared comes as the driver's own error.
        driver_error = self._engine.dialect.loaded_dbapi.Error
        try:
            yield
        except (SQLAlchemyError, driver_error) as error:
            raise self._fault(what, error) from error

    def _fault(self, what: str, error: Exception) -> LadingError:
        said = str(getattr(error, "orig", None) or error).strip()
        if "file is not a database" in said:
            msg = f"The file {self.shown} is not a SQLite database"
            return RecordError(msg, left="Nothing was changed.", todo="Name another file.")
        if said in _VAGUE and self._engine.url.database and (why := _folder_fault(Path(self._engine.url.database))):
            said = f"{said}: {why}"
        msg = f"{what} failed: the metadata store {self.shown} says: {said}"
        return StoreError(
            msg,
            left="Progress is in the tables and is not touched.",
            todo="Look whether the store can be reached and has room; then try again.",
        )


def _folder_fault(file: Path) -> str:
    """Why nothing can be written beside a file; empty when it can."""
    try:
        made, name = tempfile.mkstemp(dir=file.parent)
    except OSError as error:
        return error.strerror or ""
    os.close(made)
    Path(name).unlink()
    return ""


def _insert_of(engine: Engine) -> Callable[[Table], Any]:
    """INSERT with what its dialect says of rows that are there."""
    if engine.dialect.name == "sqlite":
        return sqlite.insert
    from sqlalchemy.dialects import postgresql

    return postgresql.insert


def parse_url(url: str) -> URL:
    """A path of a SQLite file, `sqlite:///…` or `postgresql://…`."""
    try:
        parsed = make_url(url) if "://" in url else URL.create("sqlite", database=url)
    except ArgumentError as error:
        why = "it is not a URL"
        raise _bad_url(why) from error
    match parsed.drivername:
        case "sqlite" | "sqlite+pysqlite":
            if parsed.database in (None, "", ":memory:"):
                why = "a store in memory would be another one for every thread"
                raise _bad_url(why)
            return parsed.set(drivername="sqlite")
        case "postgresql" | "postgres" | "postgresql+psycopg":
            return parsed.set(drivername="postgresql+psycopg")
    why = f"{parsed.drivername} is not supported"
    raise _bad_url(why)


def _bad_url(why: str) -> ConfigError:
    msg = f"The place of the metadata store is wrong: {why}"
    return ConfigError(
        msg, left="Nothing was opened.", todo="Give a file name, sqlite:///file or postgresql://user@host/database."
    )


def _open_engine(url: URL) -> Engine:
    if url.drivername == "sqlite":
        engine = create_engine(url)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        engine = create_engine(url, pool_pre_ping=True, connect_args=connection_limits(url.query))
    except ImportError as error:
        msg = "A metadata store in PostgreSQL needs the package psycopg"
        raise ConfigError(msg, left="Nothing was opened.", todo="Install lading[postgres].") from error
    event.listen(engine, "connect", _prepare_postgres)
    return end_silence(engine)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # Without this the driver begins transactions by itself, late, and not around CREATE TABLE.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    _use_wal(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _use_wal(cursor: Any) -> None:
    """Change to WAL, which the file remembers; usually somebody did so before.

    Changing it does not wait for others as statements do: when two processes open a new store in the same moment,
    the second is told at once that the database is locked. So it waits for a lock that can be waited for, and looks
    again.
    """
    for _ in range(MAX_WAL_TRIES):
        if cursor.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            return
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("ROLLBACK")
        else:
            return
    cursor.execute("PRAGMA journal_mode = WAL")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later cannot wait for another writer: it fails at once. So writers
    # say at the beginning that they will write.
    writes = connection.get_execution_options().get("lading_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _prepare_postgres(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(f"SET lock_timeout = {BUSY_TIMEOUT_MS}")
    cursor.execute(f"SET statement_timeout = {STATEMENT_TIMEOUT_MS}")
    # A process that is stopped inside a transaction holds its locks; those who take its jobs over would wait for it.
    cursor.execute(f"SET idle_in_transaction_session_timeout = {BUSY_TIMEOUT_MS}")
    cursor.close()
    connection.commit()
