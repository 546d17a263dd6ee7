"""Statements about names alone, which need neither tables nor Spark, and the door to all others.

What those import takes longer than these statements do, so that it is imported here when one of them comes.
"""

from __future__ import annotations

from lading.service.result import Result, done, table
from lading.service.session import Session
from lading.sql.statements.jobs import Statement
from lading.sql.statements.tables import CreateDatabase, DropDatabase, ShowDatabases, ShowTables, UseDatabase


def execute(session: Session, statement: Statement) -> Result:
    """Run a statement that its session may run."""
    match statement:
        case CreateDatabase():
            session.lading.catalog.create_database(statement.name, if_not_exists=statement.if_not_exists)
        case DropDatabase():
            if not (statement.if_exists and not session.lading.catalog.has_database(statement.name)):
                session.lading.store.drop_database(statement.name)
        case UseDatabase():
            session.lading.catalog.require_database(statement.name)
            session.database = statement.name
        case ShowDatabases():
            names = [entry.name for entry in session.lading.store.list_databases()]
            return table(("Database",), [(name,) for name in names if session.sees_database(name)])
        case ShowTables():
            database = statement.db or session.database
            session.lading.catalog.require_database(database)
            names = [entry.name for entry in session.lading.store.list_tables(database)]
            return table((f"Tables_in_{database}",), [(name,) for name in names if session.sees_table(database, name)])
        case _:
            from lading.service.statements import dispatch

            return dispatch.execute(session, statement)
    return done()
