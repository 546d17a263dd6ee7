"""ALTER of a job whose secrets cannot be opened any more: it goes on when all of them are given again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lading.errors import LadingError, SecretError
from lading.jobs.record import JobRecord
from lading.service.compile.sourced import AnyJob, source_of
from lading.service.edits.written import statement_of, written_statement
from lading.service.session import Session
from lading.sql.statements.jobs import AlterRoutineLoad, CreateJob, CreateRoutineLoad, Statement
from lading.sql.statements.parts import SourceFunction
from lading.sql.syntax.parse import parse_statement
from lading.sql.syntax.spans import MASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """The statement of a job, with its secrets if those could be opened."""

    statement: AnyJob
    has_lost_secrets: bool = False


def statement_to_alter(session: Session, record: JobRecord, given: SourceFunction | None) -> Whole:
    """The statement that an ALTER starts from. `given` is the source that it writes. Raises SecretError."""
    try:
        return Whole(statement=statement_of(session.lading, record))
    except SecretError as error:
        # ALTER JOB writes the source as a whole; ALTER ROUTINE LOAD only what changes.
        needed = set() if record.dialect.alters_whole_source else _secret_names(session, record)
        missing = needed - set(given.properties) if given is not None else needed
        if given is None or missing:
            todo = (
                f"{error.todo} ALTER has to name all of them: {', '.join(sorted(missing))}." if missing else error.todo
            )
            raise SecretError(error.what, left=error.left, todo=todo) from error
    return Whole(statement=written_statement(record), has_lost_secrets=True)


def _secret_names(session: Session, record: JobRecord) -> set[str]:
    """Names of the properties whose values were secrets: the audit has the statements, with masks for the values."""
    found: set[str] = set()
    for entry in reversed(session.lading.store.list_audit(job_id=record.job_id)):
        try:
            written = _properties(parse_statement(entry.statement)) if entry.statement else {}
        except LadingError:
            continue  # Written by another version; the source says what is missing.
        found -= {name for name, value in written.items() if value != MASK}
        found |= {name for name, value in written.items() if value == MASK}
    return found


def _properties(statement: Statement) -> Mapping[str, str]:
    if isinstance(statement, CreateJob | CreateRoutineLoad):
        return source_of(statement).properties
    if isinstance(statement, AlterRoutineLoad) and statement.source is not None:
        return statement.source.properties
    return {}
