"""Bring a store to the form this Lading knows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, func, insert, inspect, select, text

from lading.errors import RecordError
from lading.store.database import Database
from lading.store.migrations import SERIAL, Migration
from lading.store.schema import MIGRATIONS

_LOCK = 0x1AD1
"""Any number that is always the same: two processes that open one PostgreSQL store take turns."""


def migrate(database: Database, migrations: Sequence[Migration], now: datetime) -> list[int]:
    """Apply what is missing, each step in one transaction with the note that it was applied.

    Dies within a step: nothing of it is there, and the next start does it. A newer store is refused, untouched.
    """
    with database.read(f"Migration {migrations[0].version}") as connection:
        form = _current_version(connection, migrations, database.shown)
    applied = list[int]()
    for step in migrations:
        if step.version <= form:  # Forms are never taken back: nothing to write, and no lock to wait for.
            continue
        with database.write(f"Migration {step.version}") as connection:
            _take_turn(connection)
            read_version = _noted_version if form or applied else _current_version
            if read_version(connection, migrations, database.shown) < step.version:
                _apply(connection, step, now)
                applied.append(step.version)
    return applied


def _take_turn(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))


def _current_version(connection: Connection, migrations: Sequence[Migration], shown: str) -> int:
    names = set(inspect(connection).get_table_names())
    if MIGRATIONS.name not in names:
        if names and connection.dialect.name == "sqlite":
            msg = f"The file {shown} is a database of something else: it has the table {min(names)}"
            raise RecordError(msg, left="Nothing was changed.", todo="Name another file.")
        return 0
    return _noted_version(connection, migrations, shown)


def _noted_version(connection: Connection, migrations: Sequence[Migration], shown: str) -> int:
    """Of a store that is known to be Lading's: to list its tables takes longer than a step does."""
    current = connection.execute(select(func.coalesce(func.max(MIGRATIONS.c.version), 0))).scalar_one()
    newest = migrations[-1].version
    if current > newest:
        msg = f"The metadata store {shown} has form {current}; this Lading knows forms up to {newest}"
        raise RecordError(msg, left="Nothing was changed.", todo="Use the newer Lading that wrote it.", version=current)
    return int(current)


def _apply(connection: Connection, step: Migration, now: datetime) -> None:
    for statement in step.statements:
        connection.execute(text(statement.replace("{serial}", SERIAL[connection.dialect.name])))
    if step.rewrite is not None:
        step.rewrite(connection)
    connection.execute(insert(MIGRATIONS).values(version=step.version, name=step.name, applied_at=now))
