"""Statements without their secrets: to show, and to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from lading.sql.statements.catalogs import AlterCatalog, CreateCatalog
from lading.sql.statements.jobs import (
    AlterJob,
    AlterRoutineLoad,
    CreateJob,
    CreateRoutineLoad,
    ExplainAlter,
    ExplainCreate,
    Query,
    Statement,
)
from lading.sql.statements.parts import InsertSelect, SourceFunction
from lading.sql.statements.tables import CreateTable, LookAt
from lading.sql.statements.users import AlterUser, CreateUser
from lading.sql.syntax.spans import MASK, is_hidden, is_reference, is_secret, mask_text

Change = Callable[[Mapping[str, str]], dict[str, str]]
AnyStatement = TypeVar("AnyStatement", bound=Statement)


def mask(statement: AnyStatement) -> AnyStatement:
    """The statement with `******` for every secret. References such as env:NAME stay, for they are no secrets."""
    return _changed(statement, mask_properties)


def without_secrets(statement: AnyStatement) -> AnyStatement:
    """The statement without the properties that hold a secret, as bills keep it. References stay."""
    return _changed(statement, drop_secrets)


def has_references(statement: Statement) -> bool:
    """Whether a secret is only referred to, as `env:NAME` or `file:/path`, somewhere in the statement."""
    found: list[str] = []

    def look(properties: Mapping[str, str]) -> dict[str, str]:
        found.extend(name for name, value in properties.items() if is_secret(name) and is_reference(value))
        return dict(properties)

    _changed(statement, look)
    return bool(found)


def mask_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties with `******` for every secret."""
    return {name: MASK if is_hidden(name, value) else value for name, value in properties.items()}


def drop_secrets(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties without those that hold a secret."""
    return {name: value for name, value in properties.items() if not is_hidden(name, value)}


def _changed(statement: AnyStatement, change: Change) -> AnyStatement:
    """Change every set of properties, wherever the statement has one."""
    match statement:
        case CreateJob():
            insert = _insert(statement.insert, change)
            made = _changed(statement.creates, change) if statement.creates is not None else None
            return replace(statement, properties=change(statement.properties), insert=insert, creates=made)
        case AlterJob():
            new = _insert(statement.insert, change) if statement.insert is not None else None
            return replace(statement, properties=change(statement.properties), insert=new)
        case CreateRoutineLoad():
            source = _source(statement.source, change)
            return replace(statement, properties=change(statement.properties), source=source)
        case AlterRoutineLoad():
            given = _source(statement.source, change) if statement.source is not None else None
            return replace(statement, properties=change(statement.properties), source=given)
        case ExplainAlter():
            return replace(statement, alter=_changed(statement.alter, change))
        case ExplainCreate():
            return replace(statement, create=_changed(statement.create, change))
        case CreateTable():
            of = _source(statement.schema_of, change) if statement.schema_of is not None else None
            return replace(statement, properties=change(statement.properties), schema_of=of)
        case LookAt():
            return replace(statement, source=_source(statement.source, change))
        case CreateCatalog():
            return replace(statement, properties=change(statement.properties))
        case AlterCatalog() if statement.properties is not None:
            return replace(statement, properties=change(statement.properties))
        case Query():
            functions = tuple(_source(function, change) for function in statement.functions)
            return replace(statement, text=mask_text(statement.text), functions=functions)
        case CreateUser() if statement.password is None:
            return statement
        case CreateUser() | AlterUser():
            # Bills never keep these; the audit does.
            return replace(statement, password=MASK)
        case _:
            return statement


def _insert(insert: InsertSelect, change: Change) -> InsertSelect:
    return replace(insert, source=_source(insert.source, change))


def _source(source: SourceFunction, change: Change) -> SourceFunction:
    return SourceFunction(name=source.name, properties=change(source.properties))
