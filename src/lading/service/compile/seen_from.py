"""Relative paths of a statement, as the one who wrote it means them: a service has another folder than its callers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

from lading.deferred import deferred
from lading.sql.statements.jobs import AlterJob, CreateJob, ExplainAlter, ExplainCreate, Statement
from lading.sql.statements.parts import SourceFunction
from lading.sql.statements.tables import CreateTable, LookAt

if TYPE_CHECKING:
    from lading.sources.registry import kind_of
else:
    kind_of = deferred("lading.sources.registry", "kind_of")

AnyStatement = TypeVar("AnyStatement", bound=Statement)


def seen_from(statement: AnyStatement, folder: str) -> AnyStatement:
    """The statement with files and folders of the machine that are seen from a folder. Empty: as it is."""
    return cast("AnyStatement", _seen(statement, folder)) if folder else statement


def _seen(statement: Statement, folder: str) -> Statement:
    match statement:
        case CreateJob():
            made = seen_from(statement.creates, folder) if statement.creates is not None else None
            insert = replace(statement.insert, source=_source(statement.insert.source, folder))
            return replace(statement, insert=insert, creates=made)
        case AlterJob() if statement.insert is not None:
            return replace(statement, insert=replace(statement.insert, source=_source(statement.insert.source, folder)))
        case ExplainCreate():
            return replace(statement, create=seen_from(statement.create, folder))
        case ExplainAlter():
            return replace(statement, alter=seen_from(statement.alter, folder))
        case LookAt():
            return replace(statement, source=_source(statement.source, folder))
        case CreateTable():
            of = _source(statement.schema_of, folder) if statement.schema_of is not None else None
            place = _path(statement.location, folder) if statement.location else statement.location
            return replace(statement, schema_of=of, location=place)
        case _:
            return statement


def _source(source: SourceFunction, folder: str) -> SourceFunction:
    uri = source.properties.get("uri", "")
    if not uri or not kind_of(source.name).is_local(source.properties):
        return source
    return replace(source, properties={**source.properties, "uri": _path(uri, folder)})


def _path(path: str, folder: str) -> str:
    return path if "://" in path or path.startswith("/") else f"{folder.rstrip('/')}/{path.removeprefix('./')}"
