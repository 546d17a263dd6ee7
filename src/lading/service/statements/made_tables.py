"""CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from lading.errors import ConfigError, ConflictError, LadingError, StoreError, UnknownOutcomeError
from lading.jobs.record import JobRecord
from lading.service.catalog.drafts import DraftTable, drafted_table
from lading.service.catalog.twins import same_tables
from lading.service.result import Result, done
from lading.service.session import Session
from lading.service.statements.bound import database_of
from lading.service.statements.compact import check_property
from lading.service.statements.looking import columns_of
from lading.service.statements.reach import allow_table_hosts, check_table
from lading.sql.statements.jobs import CreateJob
from lading.sql.statements.tables import AlterTable, CreateTable


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTable:
    """A table that a job would make."""

    statement: CreateTable
    """With all its columns."""
    draft: DraftTable


_log = logging.getLogger(__name__)


def create_table(session: Session, statement: CreateTable) -> None:
    """Make a table; its columns may be those of a source."""
    database = database_of(session, statement.name)
    statement = _whole(session, statement)
    allow_table_hosts(session, statement, database)
    session.lading.catalog.create_table(statement, database)


def _whole(session: Session, statement: CreateTable) -> CreateTable:
    """The statement with its columns, whatever they are learned from. Refuses what its user may not do."""
    check_property(statement)
    check_table(session, statement)
    if statement.schema_of is not None and not (statement.if_not_exists and _is_there(session, statement)):
        statement = replace(statement, columns=columns_of(session, statement.schema_of))
        _check_partitions(statement)
    return replace(statement, schema_of=None)


@contextmanager
def made_for_job(session: Session, statement: CreateJob) -> Iterator[CreateJob]:
    """Make the table of a job when it is not there, and remove it when the job is refused in the block.

    The job is kept without this word: it is done once. Dies in the block: an empty table, which the same statement
    finds there.
    """
    made = statement.creates
    with made_unless_refused(session, _of_job(statement, made) if made is not None else None):
        yield replace(statement, creates=None)


@contextmanager
def made_unless_refused(session: Session, made: CreateTable | None) -> Iterator[None]:
    """Make a table when it is not there, and remove it when the job is refused in the block."""
    if made is None or _is_there(session, made):
        yield
        return
    create_table(session, made)
    try:
        yield
    except (UnknownOutcomeError, StoreError):
        raise  # The job may be there.
    except LadingError as refused:
        try:
            _remove_unused(session, made)
        except LadingError as error:
            _log.warning("Table %s was made for a job that was refused, and stays: %s", made.name, error)
        raise refused


def errors_table_of(record: JobRecord) -> str:
    """The whole name of the table that gets the bad rows of a job; empty: none does."""
    return record.spec.errors_table if record.spec is not None else ""


@contextmanager
def drafted_for_job(session: Session, statement: CreateJob) -> Iterator[tuple[CreateJob, MadeTable | None]]:
    """The job without the word that makes its table, and that table, which is not made; None when it is there."""
    made = statement.creates
    if made is None or _is_there(session, made):
        yield replace(statement, creates=None), None
        return
    lading, database = session.lading, database_of(session, made.name)
    whole = _whole(session, _of_job(statement, made))
    others = [entry.location for entry in lading.store.list_tables()]
    drafted = drafted_table(
        lading.catalog, whole, database, others=others, is_trusted=session.is_admin, at=lading.clock.now()
    )
    with drafted as draft:
        whole = replace(whole, name=whole.name.bound(session.database))
        yield replace(statement, creates=None), MadeTable(statement=whole, draft=draft)


def _of_job(statement: CreateJob, made: CreateTable) -> CreateTable:
    source = None if made.columns else statement.insert.source
    return replace(made, schema_of=made.schema_of or source)


def _remove_unused(session: Session, made: CreateTable) -> None:
    """The error says that nothing was changed. A table that somebody found there meanwhile, or that was taken as it
    is, stays: only one that is empty and that no job has ever loaded goes.
    """
    database, catalog = database_of(session, made.name), session.lading.catalog
    target = f"{database}.{made.name.name}"
    lake, is_same = catalog.open_table(database, made.name.name), same_tables(catalog, target)
    records = [stored.record for stored in session.lading.store.list_jobs()]
    is_used = any(is_same(name) for record in records for name in (record.target, errors_table_of(record)) if name)
    if is_used or lake.job_ids() or lake.scan().num_rows:
        _log.warning("Table %s was made for a job that was refused. It is in use already, and stays.", target)
        return
    catalog.drop_table(made.name, database, if_exists=True)


def _is_there(session: Session, statement: CreateTable) -> bool:
    return session.lading.catalog.has_table(database_of(session, statement.name), statement.name.name)


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
