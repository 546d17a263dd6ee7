"""The store as one object: a thin front for its rooms."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from lading.clock import Clock
from lading.store.audit import SqlAudit
from lading.store.bills import SqlBills
from lading.store.catalog import SqlCatalog
from lading.store.catalogs import SqlCatalogs
from lading.store.database import Database
from lading.store.jobs import SqlJobs
from lading.store.leases import SqlLeases
from lading.store.migrate import migrate
from lading.store.migrations import ALL_MIGRATIONS
from lading.store.roles import SqlRoles
from lading.store.settings import SqlSettings
from lading.store.users import SqlUsers


class Store(SqlJobs, SqlBills, SqlCatalog, SqlCatalogs, SqlAudit, SqlSettings, SqlUsers, SqlRoles, SqlLeases):
    """Everything that is kept of an installation, in one database. Safe to use from many threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def place(self) -> str:
        """Where the store is, without the password."""
        return self._database.shown

    @property
    def form(self) -> int:
        """The number of its newest migration: opening a store brings it there."""
        return ALL_MIGRATIONS[-1].version

    @property
    def shared_url(self) -> str:
        """The database, with the password, when services on several machines can share it; empty for SQLite."""
        return self._database.shared_url

    def close(self) -> None:
        """Close all connections. Nothing is lost: every change was durable when its call returned."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open_store(url: str, clock: Clock) -> Store:
    """Open the store at a path, `sqlite:///…` or `postgresql://…`, and bring it to the form of this Lading.

    Raises RecordError, and changes nothing, when the store was written by a newer one.
    """
    database = Database(url)
    try:
        migrate(database, ALL_MIGRATIONS, clock.now())
    except BaseException:
        database.close()
        raise
    return Store(database)
