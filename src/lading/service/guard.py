"""Who may run which statement. What somebody may not see is not there for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lading.jobs.record import JobKind, JobName, JobRecord
from lading.service.rights import Rights, denied
from lading.sql.file_properties import is_s3_uri
from lading.sql.masking import has_references
from lading.sql.parts import InsertSelect, QualifiedName, SourceFunction
from lading.sql.queries import is_about_jobs, literal_row, read_query
from lading.sql.statements import (
    AlterJob,
    ControlJob,
    CreateJob,
    CreateRoutineLoad,
    ExplainAlter,
    ExplainJob,
    ExplainRoutineLoad,
    Query,
    ShowCreateJob,
    ShowCreateRoutineLoad,
    ShowLoad,
    ShowRoutineLoad,
    ShowRoutineLoadTask,
    Statement,
    UndoAlter,
)
from lading.sql.table_statements import (
    CreateDatabase,
    CreateTable,
    DescribeTable,
    DropDatabase,
    DropTable,
    ShowDatabases,
    ShowTables,
    UseDatabase,
)
from lading.sql.user_statements import Privilege, ShowGrants, ShowRoles, ShowTokens, ShowUsers

if TYPE_CHECKING:
    from lading.service.session import Session


def sees(rights: Rights | None, record: JobRecord) -> bool:
    """Whether a job is there for somebody: not without LOAD on its table."""
    database, _, table = record.target.partition(".")
    return rights is None or rights.allow(Privilege.LOAD, database, table)


def check_allowed(session: Session, rights: Rights, statement: Statement) -> None:
    """Raise DeniedError for a statement that somebody may not run. Lists are shortened where they are made, and
    routine loads that may not be seen are not found.
    """
    if not _only_reads(statement):
        rights.require_changes()
    if has_references(statement):
        # Whoever makes a job chooses where a secret is sent: what the machine keeps is not everybody's to send.
        rights.require(Privilege.ADMIN, why="env:… and file:… name what the machine of the service keeps")
    match statement:
        case CreateJob():
            rights.require(Privilege.LOAD, *_target(session, statement.insert.table))
            _check_source(rights, statement.insert)
        case CreateRoutineLoad():
            database = statement.name.db if statement.name.db is not None else session.database
            rights.require(Privilege.LOAD, database, statement.table)
        case AlterJob():
            _check_alter(session, rights, statement)
        case ControlJob():
            _check_job(session, rights, statement.name)
        case ShowCreateJob() | ExplainJob() | ShowLoad() if statement.name.db is None:
            _check_job(session, rights, statement.name.name)
        case UndoAlter() if statement.kind == "JOB" and statement.name.db is None:
            _check_job(session, rights, statement.name.name)
        case ExplainAlter() if isinstance(statement.alter, AlterJob):
            _check_alter(session, rights, statement.alter)
        case Query():
            _check_query(session, rights, statement)
        case _:
            _check_catalog(session, rights, statement)


def _only_reads(statement: Statement) -> bool:
    """Whether a statement changes nothing but the session. What is not listed here counts as a change."""
    match statement:
        case Query() | DescribeTable() | ShowDatabases() | ShowTables() | UseDatabase() | ShowGrants() | ShowTokens():
            return True
        case ShowCreateJob() | ShowLoad() | ShowRoutineLoad() | ShowRoutineLoadTask() | ShowCreateRoutineLoad():
            return True
        case ExplainJob() | ExplainRoutineLoad() | ExplainAlter() | ShowUsers() | ShowRoles():
            return True
        case _:
            return False


def _check_catalog(session: Session, rights: Rights, statement: Statement) -> None:
    match statement:
        case CreateTable():
            rights.require(Privilege.ADMIN, *_target(session, statement.name))
            if statement.location is not None and not is_s3_uri(statement.location):
                rights.require(Privilege.ADMIN, why="the table would lie on the disk of the service")
        case DropTable():
            rights.require(Privilege.ADMIN, *_target(session, statement.name))
        case CreateDatabase():
            rights.require(Privilege.ADMIN)
        case DropDatabase():
            rights.require(Privilege.ADMIN, statement.name)
        case UseDatabase():
            _check_database(rights, statement.name)
        case ShowTables():
            _check_database(rights, statement.db or session.database)
        case DescribeTable():
            database, table = _target(session, statement.name)
            if not rights.see_table(database, table):
                raise denied(rights.identity.user, Privilege.SELECT, database, table)


def _check_database(rights: Rights, database: str) -> None:
    if database != "default" and not rights.see_database(database):
        raise denied(rights.identity.user, Privilege.SELECT, database)


def _check_job(session: Session, rights: Rights, name: str) -> None:
    """Streaming jobs say what is missing, as Doris does; a name that no job has is refused later."""
    found = session.lading.store.find_job(JobName(kind=JobKind.STREAMING, name=name), include_final=True)
    if found is not None and not sees(rights, found.record):
        raise denied(rights.identity.user, Privilege.LOAD, *_parts(found.record))


def _check_alter(session: Session, rights: Rights, statement: AlterJob) -> None:
    _check_job(session, rights, statement.name)
    if statement.insert is not None:
        _check_source(rights, statement.insert)


def _check_source(rights: Rights, insert: InsertSelect) -> None:
    """LOAD is for files in an object store, which its own keys guard. The disk of the service is its owner's."""
    if is_local(insert.source):
        rights.require(Privilege.ADMIN, why="the job would read files of the machine of the service")


def is_local(source: SourceFunction) -> bool:
    """Whether a job reads files of the machines that Lading and Spark run on."""
    return source.name == "FILE" and not is_s3_uri(source.properties.get("uri", ""))


def _check_query(session: Session, rights: Rights, query: Query) -> None:
    """SELECT on every table that a query reads. Jobs and tasks are shortened to those that may be seen.

    A query without a table reads nothing, and still takes Spark's time: not for users who may do nothing at all.
    """
    if is_about_jobs(query):
        return
    tables = read_query(query).tables
    for table in sorted(tables, key=str):
        rights.require(Privilege.SELECT, *_target(session, table))
    if not tables and not rights.is_any and literal_row(query) is None:
        raise denied(rights.identity.user, Privilege.SELECT, why="an expression runs on Spark, as a query of a table")


def _target(session: Session, name: QualifiedName) -> tuple[str, str]:
    return (name.db if name.db is not None else session.database, name.name)


def _parts(record: JobRecord) -> tuple[str, str]:
    database, _, table = record.target.partition(".")
    return database, table
