"""What each statement does, but for the quick ones."""

from __future__ import annotations

from lading.errors import ConfigError, NotSupportedError
from lading.ids import errors_id
from lading.jobs.dialects import DIALECTS, ROUTINE
from lading.jobs.record import JobRecord
from lading.service.catalog.twins import loaders
from lading.service.compile.sourced import source_of
from lading.service.edits import rollbacks
from lading.service.edits.edit import Edit, commit_edit, plan_of, show_plan
from lading.service.edits.undo import prepare_undo
from lading.service.result import Result, done, table
from lading.service.session import Session
from lading.service.statements.catalogs import execute_catalog_statement
from lading.service.statements.clean import execute_clean
from lading.service.statements.compact import execute_compact, set_properties, show_compaction
from lading.service.statements.creating import create
from lading.service.statements.errors_tables import check_errors_table, with_errors_table
from lading.service.statements.inspect import explain_job, show_load
from lading.service.statements.loads import control, find_any, operable, prepare_alter
from lading.service.statements.looking import look
from lading.service.statements.made_tables import alter_table, create_table, errors_table_of
from lading.service.statements.reach import allow_altered_hosts, check_source
from lading.service.statements.replays import explain_replay, replay_errors
from lading.service.statements.select import run_query
from lading.service.statements.shows import (
    show_create_job,
    show_create_routine,
    show_routine,
    show_routine_tasks,
    show_services,
)
from lading.service.statements.trial import explain_create
from lading.service.statements.users import execute_user_statement
from lading.service.views.audit_log import show_audit
from lading.service.views.compaction import mode_key
from lading.service.views.loads import after_change
from lading.sql.statements.admin import CleanOrphans, ShowServices
from lading.sql.statements.audit import ShowAudit
from lading.sql.statements.catalogs import CatalogStatement
from lading.sql.statements.compaction import AlterTableSet, CompactTable, ShowCompaction
from lading.sql.statements.jobs import (
    AcceptRollback,
    AlterJob,
    AlterRoutineLoad,
    ControlJob,
    ControlRoutineLoad,
    CreateJob,
    CreateRoutineLoad,
    ExplainAlter,
    ExplainCreate,
    ExplainJob,
    ExplainReplay,
    ExplainRoutineLoad,
    Query,
    ReplayErrors,
    ShowCreateJob,
    ShowCreateRoutineLoad,
    ShowLoad,
    ShowRollback,
    ShowRoutineLoad,
    ShowRoutineLoadTask,
    Statement,
    UndoAlter,
)
from lading.sql.statements.load_specs import load_spec
from lading.sql.statements.parts import QualifiedName
from lading.sql.statements.tables import (
    AlterTable,
    CreateTable,
    DescribeTable,
    DropTable,
    LookAt,
)
from lading.sql.statements.users import AlterUser, UserStatement
from lading.tables.types import spark_type


def execute(session: Session, statement: Statement) -> Result:
    match statement:
        case CreateJob() | CreateRoutineLoad():
            return create(session, statement)
        case AlterJob() | AlterRoutineLoad():
            return _alter(session, prepare_alter(session, statement))
        case UndoAlter():
            return _alter(session, _prepare_undo(session, statement))
        case AcceptRollback():
            return _accept_rollback(session, statement)
        case ReplayErrors():
            return replay_errors(session, statement)
        case CleanOrphans():
            return execute_clean(session, statement)
        case CompactTable():
            return execute_compact(session, statement)
        case AlterTableSet():
            return set_properties(session, statement)
        case ControlJob() | ControlRoutineLoad():
            return control(session, statement)
        case Query():
            return run_query(session, statement)
        case LookAt():
            return look(session, statement)
        case _ if isinstance(statement, UserStatement):
            return _change_users(session, statement)
        case _ if isinstance(statement, CatalogStatement):
            return execute_catalog_statement(session, statement)
        case _:
            return _show(session, statement)


def _change_users(session: Session, statement: UserStatement) -> Result:
    access = session.lading.access
    result = execute_user_statement(access, session.identity, statement)
    if isinstance(statement, AlterUser) and statement.name == session.user and session.identity.credential:
        # The session that set the new password knows it; every other login of the user ends.
        session.identity = access.bind(session.identity)
    return result


def _show(session: Session, statement: Statement) -> Result:
    match statement:
        case ShowCreateJob():
            return show_create_job(session, statement)
        case ShowRoutineLoad():
            return show_routine(session, statement)
        case ShowRoutineLoadTask():
            return show_routine_tasks(session, statement)
        case ShowCreateRoutineLoad():
            return show_create_routine(session, statement)
        case ExplainJob():
            return explain_job(session, find_any(session, statement.name))
        case ExplainRoutineLoad():
            return explain_job(session, operable(session, ROUTINE, statement.name))
        case ExplainCreate():
            return explain_create(session, statement)
        case ExplainAlter():
            return show_plan(plan_of(prepare_alter(session, statement.alter)))
        case ShowRollback():
            return rollbacks.show(rollbacks.look_at(session, _operable(session, statement)))
        case ExplainReplay():
            return explain_replay(session, statement)
        case ShowLoad():
            return show_load(session, statement)
        case ShowServices():
            return show_services(session)
        case ShowCompaction():
            return show_compaction(session, statement)
        case ShowAudit():
            return show_audit(session, statement)
        case _:
            return _catalog(session, statement)


def _operable(session: Session, statement: UndoAlter | ShowRollback | AcceptRollback) -> JobRecord:
    return operable(session, next(each for each in DIALECTS.values() if each.form == statement.kind), statement.name)


def _accept_rollback(session: Session, statement: AcceptRollback) -> Result:
    record = _operable(session, statement)
    rollbacks.accept(
        session,
        record,
        keeps_position=statement.keeps_position,
        reason=statement.comment or "",
        statement=statement,
    )
    after_change(session, record)
    return done(f"rollback of job {record.full_name} accepted; it stays PAUSED until RESUME")


def _prepare_undo(session: Session, statement: UndoAlter) -> Edit:
    record = _operable(session, statement)
    edit = prepare_undo(session, record, reason=statement.comment or "", statement=statement)
    check_source(session, source_of(edit.new), source_of(edit.old))
    check_errors_table(session, load_spec(edit.new), load_spec(edit.old))
    return edit


def _alter(session: Session, edit: Edit) -> Result:
    allow_altered_hosts(session, edit)
    with with_errors_table(session, load_spec(edit.new), load_spec(edit.old)):
        commit_edit(session, edit)
    after_change(session, edit.record)
    word = "" if edit.marked is not None else "warning: "
    warnings = [f"; {word}{move.remark}" for move in edit.moves if move.unit == "files" and move.remark]
    return done(f"job {edit.record.full_name} altered; it stays PAUSED" + "".join(warnings))


def _catalog(session: Session, statement: Statement) -> Result:
    catalog = session.lading.catalog
    match statement:
        case CreateTable():
            create_table(session, statement)
        case AlterTable():
            return alter_table(session, statement)
        case DropTable():
            database = _database(session, statement.name)
            _refuse_used(session, f"{database}.{statement.name.name}", is_purged=statement.is_purged)
            catalog.drop_table(statement.name, database, if_exists=statement.if_exists, purge=statement.is_purged)
            # Dies before this: the mode of a table that is not there; one that is made under its name has it.
            session.lading.store.drop_setting(mode_key(database, statement.name.name))
        case DescribeTable():
            schema = session.lading.catalog.open_table(_database(session, statement.name), statement.name.name).schema()
            rows = [(field.name, spark_type(field.type), "Yes" if field.nullable else "No") for field in schema]
            return table(("Field", "Type", "Null"), rows)
        case _:
            msg = f"{type(statement).__name__} is not supported yet"
            raise NotSupportedError(msg, todo="See the documentation of the SQL.")
    return done()


def _database(session: Session, name: QualifiedName) -> str:
    return name.within(session.database)


def _refuse_used(session: Session, target: str, *, is_purged: bool) -> None:
    loads = loaders(session.lading.catalog, target, is_purged=is_purged)
    records = [stored.record for stored in session.lading.store.list_jobs()]
    users = [str(record.full_name) for record in records if loads(record.job_id, record.target)]
    named = [(record, name) for record in records if (name := errors_table_of(record))]
    fed = [str(record.full_name) for record, name in named if loads(errors_id(record.job_id), name)]
    if fed:
        msg = f"Table {target} gets the bad rows of {', '.join(fed)}"
        todo = 'Name another table with ALTER, or none ("errors.table" = ""), or drop those jobs first.'
        raise ConfigError(msg, left="It was not touched.", todo=todo)
    if users:
        msg = f"Table {target} is loaded by {', '.join(users)}"
        raise ConfigError(msg, left="It was not touched.", todo="Drop those jobs first.")
