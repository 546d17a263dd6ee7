"""What a statement about a job says, in either dialect: whose words it has, and what it loads from."""

from __future__ import annotations

from dataclasses import replace

from lading.jobs.dialects import ROUTINE, STREAMING, Dialect
from lading.sql.statements.jobs import (
    AlterJob,
    AlterRoutineLoad,
    ControlJob,
    ControlRoutineLoad,
    CreateJob,
    CreateRoutineLoad,
)
from lading.sql.statements.parts import SourceFunction

AnyJob = CreateJob | CreateRoutineLoad
AnyForm = AnyJob | AlterJob | AlterRoutineLoad | ControlJob | ControlRoutineLoad


def dialect_of(statement: AnyForm) -> Dialect:
    """Whose words a statement has."""
    return STREAMING if isinstance(statement, CreateJob | AlterJob | ControlJob) else ROUTINE


def source_of(statement: AnyJob) -> SourceFunction:
    """S3(…), FILE(…), KAFKA(…) or KINESIS(…)."""
    return statement.insert.source if isinstance(statement, CreateJob) else statement.source


def with_source(statement: AnyJob, source: SourceFunction) -> AnyJob:
    """The same statement with other properties of its source."""
    if isinstance(statement, CreateJob):
        return replace(statement, insert=replace(statement.insert, source=source))
    return replace(statement, source=source)
