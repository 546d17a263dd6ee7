"""Who may run which statement. What somebody may not see is not there for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lading.deferred import deferred
from lading.errors import DeniedError, JobNotFoundError
from lading.jobs.record import JobRecord
from lading.model.names import ALL, database_key, is_external, split_key, split_table
from lading.service.limits.statement_size import SHORT
from lading.service.security.privileges import Rights, denied
from lading.sql.statements.admin import CleanOrphans, ShowServices
from lading.sql.statements.catalogs import (
    AlterCatalog,
    CreateCatalog,
    DropCatalog,
    RefreshCatalog,
    ShowCatalogs,
    ShowCreateCatalog,
    SwitchCatalog,
)
from lading.sql.statements.compaction import AlterTableSet, CompactTable, ShowCompaction
from lading.sql.statements.jobs import (
    AlterJob,
    CreateJob,
    CreateRoutineLoad,
    ExplainAlter,
    ExplainCreate,
    ExplainJob,
    ExplainReplay,
    ExplainRoutineLoad,
    Query,
    ShowCreateJob,
    ShowCreateRoutineLoad,
    ShowLoad,
    ShowRollback,
    ShowRoutineLoad,
    ShowRoutineLoadTask,
    Statement,
)
from lading.sql.statements.parts import InsertSelect, QualifiedName, SourceFunction
from lading.sql.statements.tables import (
    AlterTable,
    CreateDatabase,
    CreateTable,
    DescribeTable,
    DropDatabase,
    DropTable,
    LookAt,
    ShowDatabases,
    ShowTables,
    UseDatabase,
)
from lading.sql.statements.users import Privilege, ShowGrants, ShowRoles, ShowTokens, ShowUsers
from lading.sql.syntax.masking import has_references

if TYPE_CHECKING:
    from lading.sources.files.properties import is_s3_uri
    from lading.sources.registry import kind_of
    from lading.sql.expressions.queries import is_about_jobs, literal_row, read_query
else:
    is_s3_uri = deferred("lading.sources.files.properties", "is_s3_uri")
    kind_of = deferred("lading.sources.registry", "kind_of")
    is_about_jobs = deferred("lading.sql.expressions.queries", "is_about_jobs")
    literal_row = deferred("lading.sql.expressions.queries", "literal_row")
    read_query = deferred("lading.sql.expressions.queries", "read_query")


def sees(rights: Rights | None, record: JobRecord) -> bool:
    """Whether a job is there for somebody: not without LOAD on its table."""
    database, table = split_table(record.target)
    return rights is None or rights.allow(Privilege.LOAD, database, table)


def check_allowed(database: str, rights: Rights, statement: Statement) -> None:
    """Raise DeniedError for a statement that somebody may not run. Lists are shortened where they are made, and
    jobs that may not be seen are not found.
    """
    if not _only_reads(statement):
        rights.require_changes()
    if has_references(statement):
        # The maker of a job chooses where a secret is sent: what the machine keeps is not everybody's to send.
        rights.require(Privilege.ADMIN, why="env:… and file:… name what the machine of the service keeps")
    match statement:
        case ExplainCreate():
            check_allowed(database, rights, statement.create)
        case CreateJob():
            if statement.creates is not None:
                _check_catalog(database, rights, statement.creates)
            rights.require(Privilege.LOAD, *_target(database, statement.insert.table))
            _check_source(rights, statement.insert)
            _check_joined(database, rights, statement.insert)
        case CreateRoutineLoad():
            place = (statement.table_in or statement.name).within(database)
            rights.require(Privilege.LOAD, place, statement.table)
        case AlterJob():
            _check_alter(database, rights, statement)
        case ExplainAlter() if isinstance(statement.alter, AlterJob):
            _check_alter(database, rights, statement.alter)
        case Query():
            _check_query(database, rights, statement)
        case _:
            _check_catalog(database, rights, statement)


def _only_reads(statement: Statement) -> bool:
    """Whether a statement changes nothing but the session. What is not listed here counts as a change."""
    match statement:
        case Query() | DescribeTable() | ShowDatabases() | ShowTables() | UseDatabase() | ShowGrants() | ShowTokens():
            return True
        case ShowCreateJob() | ShowLoad() | ShowRoutineLoad() | ShowRoutineLoadTask() | ShowCreateRoutineLoad():
            return True
        case ShowServices() | ShowCompaction() | LookAt():
            return True
        case ShowCatalogs() | ShowCreateCatalog() | SwitchCatalog():
            return True
        case ExplainJob() | ExplainRoutineLoad() | ExplainAlter() | ShowRollback() | ShowUsers() | ShowRoles():
            return True
        case ExplainReplay():
            return True
        case _:
            return False


def _check_catalog(database: str, rights: Rights, statement: Statement) -> None:
    match statement:
        case CreateTable():
            rights.require(Privilege.ADMIN, *_target(database, statement.name))
            if statement.location is not None and not is_s3_uri(statement.location):
                rights.require(Privilege.ADMIN, why="the table would lie on the disk of the service")
            if statement.schema_of is not None:
                _check_look(rights, statement.schema_of)
        case LookAt():
            _check_look(rights, statement.source)
        case DropTable() | AlterTable():
            rights.require(Privilege.ADMIN, *_target(database, statement.name))
        case CreateDatabase():
            place = _within(database, statement.catalog, ALL)
            rights.require(Privilege.ADMIN, *((place,) if is_external(place) else ()))
        case ShowServices():
            rights.require(Privilege.ADMIN)
        case CleanOrphans():
            # Paths and sizes of all tables are told, and files deleted.
            rights.require(Privilege.ADMIN, *(_target(database, statement.table) if statement.table else ()))
        case CompactTable() | AlterTableSet():
            rights.require(Privilege.ADMIN, *_target(database, statement.table))
        case DropDatabase():
            rights.require(Privilege.ADMIN, _within(database, statement.catalog, statement.name))
        case UseDatabase():
            _check_database(rights, _within(database, statement.catalog, statement.name))
        case ShowTables():
            _check_database(rights, _within(database, statement.catalog, statement.db) if statement.db else database)
        case CreateCatalog() | AlterCatalog() | DropCatalog() | RefreshCatalog():
            # Its hosts are reached with keys that everybody who loads there uses.
            rights.require(Privilege.ADMIN)
        case ShowCompaction(table=QualifiedName() as name) | DescribeTable(name=name):
            database, table = _target(database, name)
            if not rights.see_table(database, table):
                raise denied(rights.identity.user, Privilege.SELECT, database, table)


def _check_look(rights: Rights, source: SourceFunction) -> None:
    """Who could load from a source may look at it: LOAD on anything, and ADMIN for files of the machine."""
    if not rights.allow_anywhere(Privilege.LOAD):
        raise _not_read(rights, Privilege.LOAD)
    if is_local(source):
        rights.require(Privilege.ADMIN, why="the statement would read files of the machine of the service")


def _check_database(rights: Rights, database: str) -> None:
    if database != "default" and not rights.see_database(database):
        raise denied(rights.identity.user, Privilege.SELECT, database)


def no_such_job(name: str) -> JobNotFoundError:
    """The error for a job that is not there, and for one that is not there for somebody."""
    msg = f"job not exist: {name}"
    return JobNotFoundError(msg, left="Nothing was changed.", todo="See SHOW JOBS.")


def _check_alter(database: str, rights: Rights, statement: AlterJob) -> None:
    if statement.insert is not None:
        _check_source(rights, statement.insert)
        _check_joined(database, rights, statement.insert)


def _check_joined(database: str, rights: Rights, insert: InsertSelect) -> None:
    """What a job writes of a table that it joins with, others can read: SELECT is needed, as for a query."""
    if insert.join is not None:
        rights.require(Privilege.SELECT, *_target(database, insert.join.table))


def _check_source(rights: Rights, insert: InsertSelect) -> None:
    """LOAD is for files in an object store, which its own keys guard. The disk of the service is its owner's."""
    if is_local(insert.source):
        rights.require(Privilege.ADMIN, why="the job would read files of the machine of the service")


def is_local(source: SourceFunction) -> bool:
    """Whether a job reads files of the machines that Lading and Spark run on."""
    return kind_of(source.name).is_local(source.properties)


def _check_query(database: str, rights: Rights, query: Query) -> None:
    """SELECT on every table that a query reads. Jobs and tasks are shortened to those that may be seen.

    A query without a table reads nothing that somebody could be granted, and still takes Spark's time. What Lading
    answers by itself is for everybody.
    """
    if is_about_jobs(query):
        return
    tables = read_query(query).tables
    for table in sorted(tables, key=str):
        rights.require(Privilege.SELECT, *_target(database, table))
    if not tables and literal_row(query) is None:
        rights.require(Privilege.ADMIN, why="an expression without a table runs on Spark; select it from a table")


def _within(database: str, catalog: str | None, name: str) -> str:
    return database_key(catalog or split_key(database)[0], name)


def _target(database: str, name: QualifiedName) -> tuple[str, str]:
    return (name.within(database), name.name)


# Before a statement is read as a whole, which can take long.

_NEEDS = {
    Privilege.LOAD: (
        "CREATE JOB",
        "CREATE ROUTINE LOAD",
        "ALTER JOB",
        "ALTER ROUTINE LOAD",
        "EXPLAIN ALTER",
        "SKIP FILE",
        "LOAD FILE",
        "EXPLAIN SKIP FILE",
        "EXPLAIN LOAD FILE",
        "EXPLAIN CREATE",
    ),
    Privilege.ADMIN: ("CREATE TABLE", "ALTER TABLE"),
    Privilege.SELECT: ("SELECT", "WITH"),
}
"""Statements that hold expressions or long lists, and what all of them need for something."""


def check_length(rights: Rights, text: str) -> None:
    """Raise DeniedError for a long text of somebody who may do nothing: what they may run is short."""
    if len(text) > SHORT and not any(rights.allow_anywhere(each) for each in Privilege):
        raise _not_read(rights, None)


def check_form(rights: Rights, form: str, length: int) -> None:
    """Raise DeniedError for a form of statement that somebody may not run on anything.

    Short queries are read: they may be about jobs, or about what MySQL's clients want to know.
    """
    for privilege, forms in _NEEDS.items():
        is_query = privilege is Privilege.SELECT
        if form.startswith(forms) and not rights.allow_anywhere(privilege) and not (is_query and length <= SHORT):
            raise _not_read(rights, privilege)


def _not_read(rights: Rights, privilege: Privilege | None) -> DeniedError:
    user = rights.identity.user
    what = f"{privilege.value} command denied" if privilege else "Command denied"
    msg = f"{what} to user '{user}', who has no such privilege on anything"
    todo = "Somebody with ADMIN on everything can GRANT it; see SHOW GRANTS."
    return DeniedError(msg, left="The statement was not read.", todo=todo, user=user)
