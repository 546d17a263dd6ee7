"""CREATE JOB, CREATE ROUTINE LOAD: what is checked before the job is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lading.ids import new_job_id
from lading.jobs.events import Created
from lading.jobs.record import JobRecord
from lading.jobs.transition import create_record
from lading.model.load import LoadSpec
from lading.service.catalog.joined import CatalogJoin
from lading.service.compile.compiler import window_of
from lading.service.compile.sourced import AnyJob, dialect_of, source_of, with_source
from lading.service.edits.create import create_open_job
from lading.service.result import Result, done
from lading.service.security.job_owner import keep_owner
from lading.service.session import Session
from lading.service.statements.bound import bound_names, database_of
from lading.service.statements.errors_tables import bound_errors_table, check_errors_table, with_errors_table
from lading.service.statements.made_tables import made_for_job
from lading.service.statements.reach import allow_hosts, check_listeners, check_source
from lading.service.statements.room import check_room
from lading.sources.registry import check_load, kind_of
from lading.sql.properties.evolution import read_evolution
from lading.sql.properties.row_formats import implied_record_quotes
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.statements.load_specs import load_spec
from lading.sql.statements.parts import QualifiedName
from lading.sql.syntax.masking import without_secrets
from lading.sql.syntax.render import render


def create(session: Session, statement: AnyJob) -> Result:
    """CREATE JOB, CREATE ROUTINE LOAD. All is checked against table and source before the job exists."""
    check_source(session, source_of(statement))
    if isinstance(statement, CreateJob):
        with made_for_job(session, statement) as job:
            return _create(session, job)
    return _create(session, statement)


def _create(session: Session, statement: AnyJob) -> Result:
    record, statement = prepare_create(session, statement)
    if record.spec is not None and record.spec.join is not None:
        keep_owner(session.lading.store, record.job_id, session.identity)
    with with_errors_table(session, load_spec(statement)):
        create_open_job(session, record, statement)
    warning = kind_of(record.spec.source.kind).start_warning(record.spec) if record.spec is not None else ""
    return done(
        f"{record.dialect.form.lower()} {record.full_name} created" + (f"; warning: {warning}" if warning else ""),
    )


def prepare_create(session: Session, statement: AnyJob) -> tuple[JobRecord, AnyJob]:
    """The record of a job that is checked and is not there yet, and its statement with whole names.

    Its secrets and hosts are kept. Dies after this: those of a job that does not exist, which nobody reads.
    """
    record, statement = draft_create(session, statement)
    source = source_of(statement)
    session.lading.keep_secrets(record.job_id, source.properties, source_of(without_secrets(statement)).properties)
    allow_hosts(session, record.job_id, source, statement.properties)
    return record, statement


def draft_create(session: Session, statement: AnyJob, columns: Sequence[str] = ()) -> tuple[JobRecord, AnyJob]:
    """The same, of which nothing is kept: the secrets are in the statement alone. `columns` are those of a table that
    is not made yet."""
    lading, dialect = session.lading, dialect_of(statement)
    check_listeners(session, statement.properties)
    name = statement.name if isinstance(statement, CreateRoutineLoad) else QualifiedName(name=statement.name)
    database = database_of(session, name)
    if dialect.has_database:
        lading.catalog.require_database(database)
    check_load(statement)
    check_room(session, dialect, name)
    statement = _located(session, statement, columns)
    kept, spec = without_secrets(statement), load_spec(statement)
    check_joined(session, spec)
    check_errors_table(session, spec)
    event = Created(
        job_id=new_job_id(),
        name=name.name,
        database=database,
        kind=dialect.kind,
        definition=render(kept),
        spec=spec,
        target=spec.target,
        properties=dict(kept.properties),
        comment=statement.comment or "",
        user=session.user,
        window=window_of(spec),
        at=lading.clock.now(),
    )
    record, _ = create_record(event)
    return record, statement


def _located(session: Session, statement: AnyJob, columns: Sequence[str]) -> AnyJob:
    """The statement with whole names: it means the same in every session and wherever the service is started."""
    source = source_of(statement)
    where, properties = kind_of(source.name).located(source.properties, statement.properties)
    properties = bound_errors_table(session, properties)
    statement = with_source(replace(statement, properties=properties), replace(source, properties=where))
    if isinstance(statement, CreateJob):
        grows = read_evolution(statement.properties).is_on
        return replace(statement, insert=bound_names(session, statement.insert, grows=grows, known=columns))
    place = statement.table_in.bound(session.database) if statement.table_in is not None else None
    # Quotes count in records of csv. It is written down, so that the definition says how they are read.
    said = {**properties, **implied_record_quotes(properties, statement.clauses.column_separator)}
    return replace(statement, name=statement.name.bound(session.database), table_in=place, properties=said)


def check_joined(session: Session, spec: LoadSpec) -> None:
    """Refuse a join with a table that is not there, also before the source has anything to learn its columns from."""
    if spec.join is not None:
        CatalogJoin(session.lading.catalog, spec.join.table, lambda: None).schema()
