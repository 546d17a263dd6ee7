"""Statements as records. Two statements are equal when they mean the same, wherever they stand in a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lading.sql.statements.admin import CleanOrphans, ShowServices
from lading.sql.statements.audit import ShowAudit
from lading.sql.statements.catalogs import CatalogStatement
from lading.sql.statements.compaction import AlterTableSet, CompactTable, ShowCompaction
from lading.sql.statements.parts import NO_CLAUSES, InsertSelect, LoadClauses, MergeType, QualifiedName, SourceFunction
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
from lading.sql.statements.users import UserStatement


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateJob:
    """CREATE JOB … ON STREAMING DO INSERT …"""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    insert: InsertSelect
    creates: CreateTable | None = None
    """The table that is made first, when it is not there: `INSERT INTO t CREATE TABLE IF NOT EXISTS USING …`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterJob:
    """ALTER JOB … PROPERTIES (…) COMMENT '…' INSERT …"""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    """Why."""
    insert: InsertSelect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlJob:
    """PAUSE, RESUME or DROP JOB WHERE jobName = '…'"""

    verb: Literal["PAUSE", "RESUME", "DROP"]
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCreateJob:
    """SHOW CREATE JOB name"""

    name: QualifiedName


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainJob:
    """EXPLAIN JOB name"""

    name: QualifiedName


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowLoad:
    """SHOW LOAD ERRORS, GAPS or AUDIT FOR job"""

    what: Literal["ERRORS", "GAPS", "AUDIT"]
    name: QualifiedName
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """SELECT …, as it was written."""

    text: str
    functions: tuple[SourceFunction, ...] = ()
    """Table functions that the query reads, such as jobs("type"="insert")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRoutineLoad:
    """CREATE ROUTINE LOAD …"""

    name: QualifiedName
    table: str | None = None
    """None: every record names its own table."""
    table_in: QualifiedName | None = None
    """The whole name of the table, where it is written with its database: it need not be in that of the job."""
    merge_type: MergeType = MergeType.APPEND
    clauses: LoadClauses = NO_CLAUSES
    properties: Mapping[str, str] = field(default_factory=dict)
    source: SourceFunction
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterRoutineLoad:
    """ALTER ROUTINE LOAD FOR …"""

    name: QualifiedName
    clauses: LoadClauses = NO_CLAUSES
    properties: Mapping[str, str] = field(default_factory=dict)
    source: SourceFunction | None = None
    comment: str | None = None
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRoutineLoad:
    """EXPLAIN ROUTINE LOAD [FOR] job"""

    name: QualifiedName


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainAlter:
    """EXPLAIN ALTER …: what it would do."""

    alter: AlterJob | AlterRoutineLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainCreate:
    """EXPLAIN CREATE JOB …, EXPLAIN CREATE ROUTINE LOAD …: what would become of the first rows."""

    create: CreateJob | CreateRoutineLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoAlter:
    """UNDO ALTER JOB name, UNDO ALTER ROUTINE LOAD FOR name"""

    kind: Literal["JOB", "ROUTINE LOAD"]
    name: QualifiedName
    comment: str | None = None
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRollback:
    """SHOW ROLLBACK OF JOB name, SHOW ROLLBACK OF ROUTINE LOAD FOR name"""

    kind: Literal["JOB", "ROUTINE LOAD"]
    name: QualifiedName


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptRollback:
    """ACCEPT ROLLBACK OF JOB name KEEP POSITION, ACCEPT ROLLBACK OF ROUTINE LOAD FOR name LOAD AGAIN"""

    kind: Literal["JOB", "ROUTINE LOAD"]
    name: QualifiedName
    keeps_position: bool
    """False: what the rollback took away is loaded again."""
    comment: str | None = None
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayErrors:
    """REPLAY ERRORS FOR job [AFTER n]"""

    name: QualifiedName
    after: int | None = None
    """What commits up to this seq put into quarantine is given up."""
    comment: str | None = None
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainReplay:
    """EXPLAIN REPLAY ERRORS FOR job [AFTER n]: what waits in quarantine."""

    replay: ReplayErrors


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRoutineLoad:
    """PAUSE, RESUME or STOP ROUTINE LOAD FOR …; PAUSE or RESUME ALL ROUTINE LOAD."""

    verb: Literal["PAUSE", "RESUME", "STOP"]
    name: QualifiedName | None
    """None: all jobs of the current database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRoutineLoad:
    """SHOW [ALL] ROUTINE LOAD [FOR … | LIKE …]"""

    all: bool = False
    """Also stopped and cancelled jobs."""
    name: QualifiedName | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRoutineLoadTask:
    """SHOW ROUTINE LOAD TASK FOR job, or TASK [FROM db] WHERE JobName = 'job'"""

    name: QualifiedName


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCreateRoutineLoad:
    """SHOW [ALL] CREATE ROUTINE LOAD FOR job"""

    name: QualifiedName
    all: bool = False


Statement = (
    CreateJob
    | AlterJob
    | ControlJob
    | ShowCreateJob
    | ExplainJob
    | ShowLoad
    | Query
    | CreateRoutineLoad
    | AlterRoutineLoad
    | ControlRoutineLoad
    | ShowRoutineLoad
    | ShowRoutineLoadTask
    | ShowCreateRoutineLoad
    | ExplainRoutineLoad
    | ExplainAlter
    | ExplainCreate
    | UndoAlter
    | ShowRollback
    | AcceptRollback
    | ReplayErrors
    | ExplainReplay
    | CreateTable
    | AlterTable
    | LookAt
    | DropTable
    | CreateDatabase
    | DropDatabase
    | UseDatabase
    | ShowDatabases
    | ShowTables
    | DescribeTable
    | ShowAudit
    | CleanOrphans
    | CompactTable
    | ShowCompaction
    | AlterTableSet
    | ShowServices
    | UserStatement
    | CatalogStatement
)
