"""What a statement makes the service reach, and with whose identity: checked once for every face.

Everything here needs only the properties of a statement, so it comes before mappings are read and sources are asked.
"""

from __future__ import annotations

from collections.abc import Mapping

from lading.errors import DeniedError
from lading.ids import JobId
from lading.model.load import SourceSpec
from lading.model.names import ALL
from lading.model.pairs import single_sources
from lading.service.catalog.definitions import warehouses_of
from lading.service.compile.sourced import source_of
from lading.service.edits.edit import Edit
from lading.service.security.endpoints import job_subject, table_subject
from lading.service.security.identity import (
    KnownTable,
    same_reach,
    tables_touched,
)
from lading.service.security.listener_commands import check_commands
from lading.service.security.listeners import listener_hosts
from lading.service.security.privileges import Rights
from lading.service.security.reach import hosts_of, table_hosts
from lading.service.security.vault import resolve_properties
from lading.service.session import Session
from lading.sources.files.kind import reaches_with_identity
from lading.sources.files.properties import is_s3_uri
from lading.sources.registry import kind_of
from lading.sql.properties.listeners import PREFIX
from lading.sql.statements.jobs import AlterJob, AlterRoutineLoad, Statement
from lading.sql.statements.load_specs import source_spec
from lading.sql.statements.parts import SourceFunction
from lading.sql.statements.tables import CreateTable
from lading.sql.statements.users import Privilege
from lading.sql.syntax.spans import is_secret


def check_source(session: Session, asked: SourceFunction, old: SourceFunction | None = None) -> None:
    """Refuse a source that the user of a session may not have read; `old` is what the job has now.

    What stays as it is was checked when it was made. Raises SqlError or DeniedError.
    """
    rights, source = session.rights, source_spec(asked)
    before = source_spec(old) if old is not None else None
    known = hosts_of(before) if before is not None else ()
    named = [each for each in hosts_of(source) if each not in known]
    session.lading.endpoints.check_named(named, user=session.user, is_admin=session.is_admin)
    if rights is None:
        return
    if new := _for_admins(source, before):
        rights.require(Privilege.ADMIN, why=f"{', '.join(new)} is about the machine of the service")
    known_sources = single_sources(before) if before is not None else {}
    for side, single in single_sources(source).items():
        is_known = side in known_sources and same_reach(single, known_sources[side])
        if is_known or not kind_of(single.kind).uses_service_identity(single.properties):
            continue
        rights.require_identity("the statement has no keys of its own, so the service would sign in as itself")
        _check_places(session, rights, single.properties.get("uri", ""))


def check_table(session: Session, statement: CreateTable) -> None:
    """The same for a table that is to be made in a bucket."""
    if statement.location is None or not is_s3_uri(statement.location):
        return
    rights, properties = session.rights, statement.properties
    named = table_hosts(properties, statement.location)
    session.lading.endpoints.check_named(named, user=session.user, is_admin=session.is_admin)
    if rights is not None and reaches_with_identity(properties):
        rights.require_identity("the statement has no keys of its own, so the service would sign in as itself")
        _check_places(session, rights, f"{statement.location.rstrip('/')}/")


def _check_places(session: Session, rights: Rights, uri: str) -> None:
    """The service can read every table; users of its identity cannot read more than they may SELECT."""
    tables = [
        KnownTable(database=entry.database, name=entry.name, location=entry.location)
        for entry in session.lading.store.list_tables()
    ]
    # Which tables of another catalog are there is not known without asking it: who may not read all, reads none so.
    tables += [
        KnownTable(database=f"{entry.name}.{ALL}", name="", location=place)
        for entry in session.lading.catalog.external.entries()
        for place in warehouses_of(entry.properties)
    ]
    if all(rights.allow(Privilege.SELECT, table.database, table.name) for table in tables_touched(uri, tables)):
        return
    # Not by its name: the user may not know that it is there.
    msg = f"USAGE command denied to user '{session.user}' for IDENTITY service: files of a table are at {uri}"
    todo = "Name a place without tables, or write keys of your own; with SELECT on the table, query it."
    raise DeniedError(msg, left="Nothing was changed.", todo=todo, user=session.user, privilege="USAGE")


def _for_admins(source: SourceSpec, before: SourceSpec | None) -> list[str]:
    old: Mapping[str, str] = before.properties if before is not None else {}
    return [
        name
        for name in kind_of(source.kind).admin_properties(source.properties)
        if old.get(name) != source.properties[name]
    ]


def check_listeners(session: Session, asked: Mapping[str, str], old: Mapping[str, str] | None = None) -> None:
    """Refuse listeners at hosts that the user may not name, or with secrets that are not there.

    What stays as it is was checked when it was made. Raises SqlError, DeniedError or SecretError.
    """
    check_commands(session.lading.commands, {name: to for name, to in asked.items() if (old or {}).get(name) != to})
    # Another path of a host that somebody with ADMIN named is another thing to reach.
    known = listener_hosts({name: value for name, value in (old or {}).items() if asked.get(name) == value})
    named = [each for each in listener_hosts(asked) if each not in known]
    session.lading.endpoints.check_named(named, user=session.user, is_admin=session.is_admin)
    tokens = {name: value for name, value in asked.items() if name.startswith(PREFIX) and is_secret(name)}
    resolve_properties(
        {name: value for name, value in tokens.items() if (old or {}).get(name) != value}, home=session.lading.home.path
    )


# Opening what was made.


def allow_hosts(session: Session, job_id: JobId, source: SourceFunction, properties: Mapping[str, str]) -> None:
    """Keep that somebody with ADMIN on everything named the hosts of a job."""
    if session.is_admin:
        named = (*hosts_of(source_spec(source)), *listener_hosts(properties))
        session.lading.endpoints.allow(job_subject(job_id), named)


def allow_altered_hosts(session: Session, edit: Edit) -> None:
    """The same for an ALTER, and only for hosts that its own text names: others were named by somebody else."""
    if not session.is_admin:
        return
    written = {name.lower() for name in _written(edit.statement)}
    hosts = (*hosts_of(source_spec(source_of(edit.new))), *listener_hosts(edit.new.properties))
    session.lading.endpoints.allow(
        job_subject(edit.record.job_id), [each for each in hosts if each.property.lower() in written]
    )


def _written(statement: Statement | None) -> tuple[str, ...]:
    match statement:
        case AlterJob():
            return (*statement.properties, *(statement.insert.source.properties if statement.insert else ()))
        case AlterRoutineLoad():
            return (*statement.properties, *(statement.source.properties if statement.source else ()))
        case _:
            return ()  # UNDO brings back what was written before.


def allow_table_hosts(session: Session, statement: CreateTable, database: str) -> None:
    """The same for a table. What an older table of this name was allowed does not count."""
    subject = table_subject(database, statement.name.name)
    session.lading.endpoints.forget(subject)
    if session.is_admin and statement.location is not None:
        session.lading.endpoints.allow(subject, table_hosts(statement.properties, statement.location))
