"""Statements about names alone, which need neither tables nor Spark, and the door to all others.

What those import takes longer than these statements do, so that it is imported here when one of them comes.
"""

from __future__ import annotations

from lading.errors import TableNotFoundError
from lading.model.names import INTERNAL, database_key, split_key
from lading.service.result import Result, done, table
from lading.service.session import Session
from lading.sql.statements.jobs import Statement
from lading.sql.statements.tables import CreateDatabase, DropDatabase, ShowDatabases, ShowTables, UseDatabase
from lading.store.catalogs import no_catalog


def execute(session: Session, statement: Statement) -> Result:
    """Run a statement that its session may run."""
    catalog = session.lading.catalog
    match statement:
        case CreateDatabase():
            catalog.create_database(_named(session, statement), if_not_exists=statement.if_not_exists)
        case DropDatabase():
            database = _named(session, statement)
            if not (statement.if_exists and not catalog.has_database(database)):
                catalog.drop_database(database)
        case UseDatabase():
            session.database = _used(session, statement)
        case ShowDatabases():
            named = statement.catalog or split_key(session.database)[0]
            if not session.sees_catalog(named):
                raise no_catalog(named)
            keys = catalog.databases(named)
            return table(("Database",), [(split_key(key)[1],) for key in keys if session.sees_database(key)])
        case ShowTables():
            database = _named(session, statement)
            catalog.require_database(database)
            names = [name for name in catalog.tables(database) if session.sees_table(database, name)]
            return table((f"Tables_in_{split_key(database)[1]}",), [(name,) for name in names])
        case _:
            from lading.service.statements import dispatch

            return dispatch.execute(session, statement)
    return done()


def _used(session: Session, statement: UseDatabase) -> str:
    """The database that USE means, which is there."""
    name, catalog = _named(session, statement), session.lading.catalog
    try:
        catalog.require_database(name)
    except TableNotFoundError as error:
        other = statement.name
        if (
            statement.catalog is None
            and (other == INTERNAL or catalog.external.has(other))
            and session.sees_catalog(other)
        ):
            todo = f"{other} is a catalog: SWITCH {other}, or USE {other}.database."
            raise TableNotFoundError(error.what, code=error.code, left=error.left, todo=todo) from error
        raise
    return name


def _named(session: Session, statement: CreateDatabase | DropDatabase | UseDatabase | ShowTables) -> str:
    """The database that a statement means, with its catalog."""
    name = statement.db if isinstance(statement, ShowTables) else statement.name
    if name is None:
        return session.database
    return database_key(statement.catalog or split_key(session.database)[0], name)
