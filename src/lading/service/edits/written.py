"""The statement of a job, read from the text that its record keeps: for people who look at it or change it."""

from __future__ import annotations

from dataclasses import replace

from lading.errors import JobNotFoundError
from lading.jobs.record import JobRecord
from lading.service.compile.sourced import AnyJob, source_of, with_source
from lading.service.installation import Installation
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.syntax.parse import parse_statement


def statement_of(lading: Installation, record: JobRecord) -> AnyJob:
    """The statement that made a job, with its secrets: those of the slot that the record names. Raises SecretError."""
    statement = written_statement(record)
    source, secrets = source_of(statement), lading.secrets_of(record)
    return with_source(statement, replace(source, properties={**source.properties, **secrets}))


def written_statement(record: JobRecord) -> AnyJob:
    """The same without its secrets."""
    statement = parse_statement(record.definition)
    if not isinstance(statement, CreateJob | CreateRoutineLoad):
        msg = f"The definition of job {record.name} is not CREATE JOB or CREATE ROUTINE LOAD"
        raise JobNotFoundError(msg, left="Nothing was changed.", todo="Drop the job and create it again.")
    return statement
