"""CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from dataclasses import replace

from lading.errors import ConfigError, ConflictError
from lading.service.result import Result, done
from lading.service.session import Session
from lading.service.statements.bound import database_of
from lading.service.statements.compact import check_property
from lading.service.statements.looking import columns_of
from lading.service.statements.reach import allow_table_hosts, check_table
from lading.sql.statements.jobs import CreateJob
from lading.sql.statements.tables import AlterTable, CreateTable


def create_table(session: Session, statement: CreateTable) -> None:
    """Make a table; its columns may be those of a source."""
    database, catalog = database_of(session, statement.name), session.lading.catalog
    check_property(statement)
    check_table(session, statement)
    if statement.schema_of is not None and not (statement.if_not_exists and _is_there(session, statement)):
        statement = replace(statement, columns=columns_of(session, statement.schema_of))
        _check_partitions(statement)
    statement = replace(statement, schema_of=None)
    allow_table_hosts(session, statement, database)
    catalog.create_table(statement, database)


def create_for_job(session: Session, statement: CreateJob) -> CreateJob:
    """Make the table of a job when it is not there. The job is kept without this word: it is done once.

    Dies after it: an empty table, which the same statement finds there.
    """
    made = statement.creates
    if made is None:
        return statement
    if not _is_there(session, made):
        source = None if made.columns else statement.insert.source
        create_table(session, replace(made, schema_of=made.schema_of or source))
    return replace(statement, creates=None)


def _is_there(session: Session, statement: CreateTable) -> bool:
    return session.lading.store.find_table(database_of(session, statement.name), statement.name.name) is not None


def _check_partitions(statement: CreateTable) -> None:
    names = [column.name for column in statement.columns]
    if missing := [field.column for field in statement.partition_by if field.column not in names]:
        msg = f"The table would have no column {', '.join(missing)} to partition by"
        raise ConfigError(msg, left="Nothing was made.", todo=f"The source has: {', '.join(names)}.")


def alter_table(session: Session, statement: AlterTable) -> Result:
    """One commit of the table's metadata. Jobs that load into it go on: what they do not fill is NULL."""
    database, name = database_of(session, statement.name), statement.name.name
    table = session.lading.catalog.open_table(database, name)
    known = {each.lower() for each in table.schema().names}
    for change in statement.changes:
        if change.is_new and change.name.lower() in known:
            msg = f"Table {database}.{name} already has a column {change.name}"
            raise ConflictError(msg, code="ColumnExists", left="Nothing was changed.", todo="See DESCRIBE.")
        known.add(change.name.lower())
    made = table.alter(statement.changes)
    return done(f"table {database}.{name} altered: {', '.join(map(str, made)) or 'nothing to change'}")
