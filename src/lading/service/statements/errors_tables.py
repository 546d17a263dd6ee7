"""The errors table of a job that is made or changed: what it is called, whether it can take bad rows, and making it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from lading.errors import TableNotFoundError
from lading.model.load import LoadSpec
from lading.model.names import INTERNAL, is_external, split_key, split_table
from lading.service.catalog.twins import same_tables
from lading.service.runtime.errors_columns import ERRORS_COLUMNS, check_errors_columns
from lading.service.session import Session
from lading.service.statements.made_tables import made_unless_refused
from lading.sql.properties.errors_table import PROPERTY, read_errors_table
from lading.sql.properties.values import refuse
from lading.sql.statements.parts import QualifiedName
from lading.sql.statements.tables import ColumnDefinition, CreateTable
from lading.sql.statements.users import Privilege
from lading.tables.registry import IN_CATALOGS


def bound_errors_table(session: Session, properties: Mapping[str, str]) -> Mapping[str, str]:
    """The same with the whole name of the errors table: it means the same in every session."""
    name = read_errors_table(properties)
    return {**properties, PROPERTY: str(_qualified(name).bound(session.database))} if name else properties


def check_errors_table(session: Session, spec: LoadSpec, old: LoadSpec | None = None) -> None:
    """Refuse an errors table that somebody may not load into, or that cannot take bad rows. Makes nothing.

    One that the job has already is not looked at: it may be out of reach just now.
    """
    name = spec.errors_table
    if not name or (old is not None and old.errors_table == name):
        return
    catalog, (database, table) = session.lading.catalog, split_table(name)
    if session.rights is not None:
        session.rights.require(Privilege.LOAD, database, table)
    if same_tables(catalog, name)(spec.target):
        msg = f"{PROPERTY} is {name}, the table that the job itself loads"
        raise refuse(msg, property=PROPERTY, value=name, todo="Name another one, which is made when it is not there.")
    if catalog.has_table(database, table):
        lake = catalog.open_table(database, table)
        check_errors_columns(name, lake.schema())
        lake.writer_spec()  # Raises for a table that Lading does not write.
        return
    if session.rights is not None:
        session.rights.require(Privilege.ADMIN, database, table)
    try:
        catalog.require_database(database)
    except TableNotFoundError as error:
        todo = f"Create the database, or name another table as {PROPERTY}."
        raise TableNotFoundError(error.what, code=error.code, left=error.left, todo=todo) from error


def with_errors_table(session: Session, spec: LoadSpec, old: LoadSpec | None = None) -> AbstractContextManager[None]:
    """Within this the errors table of a job is there; when the job is refused in it, one that was made goes again."""
    is_new = spec.errors_table and (old is None or old.errors_table != spec.errors_table)
    return made_unless_refused(session, _table_for(session, spec) if is_new else None)


def _table_for(session: Session, spec: LoadSpec) -> CreateTable:
    """A table of the format that the job loads."""
    is_elsewhere = is_external(split_table(spec.errors_table)[0])
    kind = IN_CATALOGS if is_elsewhere else session.lading.catalog.entry(*split_table(spec.target)).format
    columns = tuple(ColumnDefinition(name=column.name, type=column.type) for column in ERRORS_COLUMNS)
    return CreateTable(name=_qualified(spec.errors_table), columns=columns, format=kind)


def _qualified(name: str) -> QualifiedName:
    database, table = split_table(name)
    if not database:
        return QualifiedName(name=table)
    catalog, db = split_key(database)
    return QualifiedName(name=table, db=db, catalog=None if catalog == INTERNAL else catalog)
