"""Where a statement says what it loads from."""

from __future__ import annotations

from dataclasses import replace

from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.statements.parts import SourceFunction

AnyJob = CreateJob | CreateRoutineLoad


def source_of(statement: AnyJob) -> SourceFunction:
    """S3(…), FILE(…), KAFKA(…) or KINESIS(…)."""
    return statement.insert.source if isinstance(statement, CreateJob) else statement.source


def with_source(statement: AnyJob, source: SourceFunction) -> AnyJob:
    """The same statement with other properties of its source."""
    if isinstance(statement, CreateJob):
        return replace(statement, insert=replace(statement.insert, source=source))
    return replace(statement, source=source)
