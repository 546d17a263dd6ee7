"""Statements to text: one canonical form for each, which parses to the same statement again."""

from __future__ import annotations

from datetime import timedelta
from functools import singledispatch

from lading.model.table import ColumnChange, PartitionField
from lading.sql.statements.admin import CleanOrphans, ShowServices
from lading.sql.statements.audit import ShowAudit, audit_text
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
from lading.sql.statements.parts import MergeType, QualifiedName
from lading.sql.statements.tables import (
    AlterTable,
    ColumnDefinition,
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
from lading.sql.statements.users import UserStatement
from lading.sql.syntax.render_catalog import catalog_text
from lading.sql.syntax.render_parts import (
    comment_text,
    function_text,
    insert_text,
    name_text,
    properties_text,
    quoted_name,
    routine_clauses,
)
from lading.sql.syntax.render_user import user_text
from lading.sql.syntax.tokens import quote_string


def render(statement: Statement) -> str:
    """The canonical text of a statement, without a semicolon. Secrets are written out; `mask` the statement first."""
    return _text(statement)


@singledispatch
def _text(statement: object) -> str:
    raise TypeError(type(statement))


@_text.register
def _(it: CreateJob) -> str:
    lines = [f"CREATE JOB {quoted_name(it.name)}"]
    if it.properties:
        lines.append(f"PROPERTIES {properties_text(it.properties)}")
    lines.append("ON STREAMING")
    if it.comment is not None:
        lines.append(comment_text(it.comment))
    made = [_text(it.creates)] if it.creates is not None else []
    return "\n".join([*lines, "DO", *made, insert_text(it.insert)])


@_text.register
def _(it: AlterJob) -> str:
    lines = [f"ALTER JOB {quoted_name(it.name)}"]
    if it.properties or (it.insert is None and it.comment is None):
        lines.append(f"PROPERTIES {properties_text(it.properties)}")
    if it.comment is not None:
        lines.append(comment_text(it.comment))
    if it.insert is not None:
        lines.append(insert_text(it.insert))
    return "\n".join(lines)


@_text.register
def _(it: ControlJob) -> str:
    exists = " IF EXISTS" if it.if_exists else ""
    return f"{it.verb} JOB{exists} WHERE jobName = {quote_string(it.name, chr(39))}"


@_text.register
def _(it: ShowCreateJob) -> str:
    return f"SHOW CREATE JOB {name_text(it.name)}"


@_text.register
def _(it: ExplainJob) -> str:
    return f"EXPLAIN JOB {name_text(it.name)}"


@_text.register
def _(it: ShowLoad) -> str:
    limit = f" LIMIT {it.limit}" if it.limit is not None else ""
    return f"SHOW LOAD {it.what} FOR {name_text(it.name)}{limit}"


@_text.register
def _(it: Query) -> str:
    return it.text


@_text.register
def _(it: CreateRoutineLoad) -> str:
    table = f" ON {name_text(it.table_in) if it.table_in else quoted_name(it.table)}" if it.table is not None else ""
    merge = f" WITH {it.merge_type.value}" if it.merge_type is not MergeType.APPEND else ""
    lines = [f"CREATE ROUTINE LOAD {name_text(it.name)}{table}{merge}"]
    lines += routine_clauses(it.clauses)
    if it.properties:
        lines.append(f"PROPERTIES {properties_text(it.properties)}")
    lines.append(f"FROM {function_text(it.source)}")
    if it.comment is not None:
        lines.append(comment_text(it.comment))
    return "\n".join(lines)


@_text.register
def _(it: AlterRoutineLoad) -> str:
    lines = [f"ALTER ROUTINE LOAD FOR {name_text(it.name)}", *routine_clauses(it.clauses)]
    if it.properties:
        lines.append(f"PROPERTIES {properties_text(it.properties)}")
    if it.source is not None:
        lines.append(f"FROM {function_text(it.source)}")
    if it.comment is not None:
        lines.append(comment_text(it.comment))
    return "\n".join(lines)


@_text.register
def _(it: ExplainRoutineLoad) -> str:
    return f"EXPLAIN ROUTINE LOAD {name_text(it.name)}"


@_text.register
def _(it: ExplainAlter) -> str:
    return f"EXPLAIN {_text(it.alter)}"


@_text.register
def _(it: ExplainCreate) -> str:
    return f"EXPLAIN {_text(it.create)}"


@_text.register
def _(it: UndoAlter) -> str:
    what = "ROUTINE LOAD FOR" if it.kind == "ROUTINE LOAD" else it.kind
    comment = f" {comment_text(it.comment)}" if it.comment is not None else ""
    return f"UNDO ALTER {what} {name_text(it.name)}{comment}"


@_text.register
def _(it: ShowRollback) -> str:
    what = "ROUTINE LOAD FOR" if it.kind == "ROUTINE LOAD" else it.kind
    return f"SHOW ROLLBACK OF {what} {name_text(it.name)}"


@_text.register
def _(it: AcceptRollback) -> str:
    what = "ROUTINE LOAD FOR" if it.kind == "ROUTINE LOAD" else it.kind
    choice = "KEEP POSITION" if it.keeps_position else "LOAD AGAIN"
    comment = f" {comment_text(it.comment)}" if it.comment is not None else ""
    return f"ACCEPT ROLLBACK OF {what} {name_text(it.name)} {choice}{comment}"


@_text.register
def _(it: ReplayErrors) -> str:
    after = f" AFTER {it.after}" if it.after is not None else ""
    comment = f" {comment_text(it.comment)}" if it.comment is not None else ""
    return f"REPLAY ERRORS FOR {name_text(it.name)}{after}{comment}"


@_text.register
def _(it: ExplainReplay) -> str:
    return f"EXPLAIN {_text(it.replay)}"


@_text.register
def _(it: ControlRoutineLoad) -> str:
    if it.name is None:
        return f"{it.verb} ALL ROUTINE LOAD"
    return f"{it.verb} ROUTINE LOAD FOR {name_text(it.name)}"


@_text.register
def _(it: ShowRoutineLoad) -> str:
    head = "SHOW ALL ROUTINE LOAD" if it.all else "SHOW ROUTINE LOAD"
    if it.name is not None:
        return f"{head} FOR {name_text(it.name)}"
    return f"{head} LIKE {quote_string(it.like, chr(39))}" if it.like is not None else head


@_text.register
def _(it: ShowRoutineLoadTask) -> str:
    return f"SHOW ROUTINE LOAD TASK FOR {name_text(it.name)}"


@_text.register
def _(it: ShowCreateRoutineLoad) -> str:
    return f"SHOW {'ALL ' if it.all else ''}CREATE ROUTINE LOAD FOR {name_text(it.name)}"


@_text.register
def _(it: CreateTable) -> str:
    exists = "IF NOT EXISTS " if it.if_not_exists else ""
    columns = ",\n".join(f"    {_column(column)}" for column in it.columns)
    head = f"CREATE TABLE {exists}{name_text(it.name)}"
    lines = [f"{head} (", columns, f") USING {it.format}"] if it.columns else [f"{head} USING {it.format}"]
    lines += _table_options(it)
    if it.schema_of is not None:
        lines.append(f"AS SCHEMA OF {function_text(it.schema_of)}")
    return "\n".join(lines)


def _table_options(it: CreateTable) -> list[str]:
    lines = []
    if it.partition_by:
        lines.append(f"PARTITIONED BY ({', '.join(_partition(field) for field in it.partition_by)})")
    if it.location is not None:
        lines.append(f"LOCATION {quote_string(it.location, chr(39))}")
    if it.comment is not None:
        lines.append(comment_text(it.comment))
    if it.properties:
        lines.append(f"TBLPROPERTIES {properties_text(it.properties)}")
    return lines


@_text.register
def _(it: AlterTable) -> str:
    return f"ALTER TABLE {name_text(it.name)} " + ", ".join(map(_change, it.changes))


def _change(change: ColumnChange) -> str:
    words = ["ADD" if change.is_new else "MODIFY", "COLUMN", quoted_name(change.name), change.type]
    words += [comment_text(change.comment)] if change.comment else []
    if change.after is not None:
        words.append(f"AFTER {quoted_name(change.after)}" if change.after else "FIRST")
    return " ".join(words)


@_text.register
def _(it: LookAt) -> str:
    if it.limit is None:
        return f"DESCRIBE FROM {function_text(it.source)}"
    return f"SELECT * FROM {function_text(it.source)} LIMIT {it.limit}"  # noqa: S608 - quoted by function_text


def _column(column: ColumnDefinition) -> str:
    kind = f"varchar({column.max_length})" if column.max_length is not None else column.type
    words = [quoted_name(column.name), kind]
    if not column.nullable:
        words.append("NOT NULL")
    if column.comment is not None:
        words.append(comment_text(column.comment))
    return " ".join(words)


def _partition(field: PartitionField) -> str:
    column = quoted_name(field.column)
    if field.transform == "identity":
        return column
    if field.transform.endswith("]"):
        name, _, count = field.transform.removesuffix("]").partition("[")
        return f"{name}({count}, {column})"
    return f"{field.transform}s({column})"


@_text.register
def _(it: DropTable) -> str:
    return f"DROP TABLE {'IF EXISTS ' if it.if_exists else ''}{name_text(it.name)}{' PURGE' if it.is_purged else ''}"


@_text.register
def _(it: CreateDatabase) -> str:
    return f"CREATE DATABASE {'IF NOT EXISTS ' if it.if_not_exists else ''}{_database(it.catalog, it.name)}"


@_text.register
def _(it: DropDatabase) -> str:
    return f"DROP DATABASE {'IF EXISTS ' if it.if_exists else ''}{_database(it.catalog, it.name)}"


@_text.register
def _(it: UseDatabase) -> str:
    return f"USE {_database(it.catalog, it.name)}"


@_text.register
def _(it: ShowDatabases) -> str:
    return f"SHOW DATABASES FROM {quoted_name(it.catalog)}" if it.catalog is not None else "SHOW DATABASES"


@_text.register
def _(it: ShowTables) -> str:
    return f"SHOW TABLES FROM {_database(it.catalog, it.db)}" if it.db is not None else "SHOW TABLES"


def _database(catalog: str | None, name: str) -> str:
    return name_text(QualifiedName(name=name, db=catalog))


@_text.register
def _(it: DescribeTable) -> str:
    return f"DESCRIBE {name_text(it.name)}"


@_text.register
def _(it: ShowAudit) -> str:
    return audit_text(it)


@_text.register
def _(it: ShowServices) -> str:
    return "SHOW SERVICES"


@_text.register
def _(it: CleanOrphans) -> str:
    parts = ["ADMIN CLEAN ORPHANS"]
    if it.table is not None:
        parts.append(f"FROM {name_text(it.table)}")
    if it.older_than is not None:
        parts.append(f"OLDER THAN {it.older_than // timedelta(hours=1)} HOURS")
    return " ".join([*parts, *(["DRY RUN"] if it.dry_run else [])])


@_text.register
def _(it: CompactTable) -> str:
    return f"ADMIN COMPACT TABLE {name_text(it.table)}{' DRY RUN' if it.dry_run else ''}"


@_text.register
def _(it: ShowCompaction) -> str:
    return f"SHOW COMPACTION FROM {name_text(it.table)}" if it.table is not None else "SHOW COMPACTION"


@_text.register
def _(it: AlterTableSet) -> str:
    return f"ALTER TABLE {name_text(it.table)} SET {properties_text(it.properties)}"


@_text.register
def _(it: UserStatement) -> str:
    return user_text(it)


@_text.register
def _(it: CatalogStatement) -> str:
    return catalog_text(it)
