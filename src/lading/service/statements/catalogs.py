"""CREATE, ALTER, DROP and SHOW CATALOG, SWITCH."""

from __future__ import annotations

from datetime import datetime

from lading.errors import ConfigError
from lading.model.load import LoadSpec
from lading.model.names import INTERNAL, is_external, split_key
from lading.service.catalog.definitions import read_definition
from lading.service.result import Result, done, table
from lading.service.session import Session
from lading.sql.statements.catalogs import (
    AlterCatalog,
    CatalogStatement,
    CreateCatalog,
    DropCatalog,
    RefreshCatalog,
    ShowCatalogs,
    ShowCreateCatalog,
    SwitchCatalog,
)
from lading.sql.syntax.masking import mask
from lading.sql.syntax.render import render
from lading.store.catalogs import no_catalog

_COLUMNS = ("CatalogId", "CatalogName", "Type", "IsCurrent", "CreateTime", "LastUpdateTime", "Comment")
"""As Doris has them."""


def execute_catalog_statement(session: Session, statement: CatalogStatement) -> Result:
    external = session.lading.catalog.external
    match statement:
        case CreateCatalog():
            named = read_definition(statement.properties).hosts
            session.lading.endpoints.check_named(named, user=session.user, is_admin=session.is_admin)
            external.create(statement)
        case AlterCatalog():
            _refuse_internal(statement.name, "altered")
            if statement.new_name is not None:
                _refuse_used(session, statement.name)
            external.alter(statement)
        case DropCatalog():
            _refuse_internal(statement.name, "dropped")
            if statement.if_exists and all(entry.name != statement.name for entry in external.entries()):
                return done()
            _refuse_used(session, statement.name)
            external.drop(statement.name)
        case ShowCatalogs():
            return _show(session)
        case ShowCreateCatalog():
            return _show_create(session, statement.name)
        case SwitchCatalog():
            _require_seen(session, statement.name)
            session.database = "default" if statement.name == INTERNAL else f"{statement.name}."
        case RefreshCatalog():
            # Nothing of a catalog is remembered: asking it shows whether it answers.
            if statement.name != INTERNAL:
                with external.namespaces(statement.name) as namespaces:
                    namespaces.databases()
    return done()


def _show(session: Session) -> Result:
    current = split_key(session.database)[0]
    rows = [("0", INTERNAL, INTERNAL, _mark(INTERNAL, current), "", "", "The tables of this installation")]
    for entry in session.lading.catalog.external.entries():
        if session.sees_catalog(entry.name):
            head = str(entry.catalog_id), entry.name, entry.properties.get("type", ""), _mark(entry.name, current)
            rows.append((*head, _time(entry.created_at), _time(entry.changed_at), entry.comment))
    return table(_COLUMNS, rows)


def _mark(name: str, current: str) -> str:
    return "yes" if name == current else ""


def _show_create(session: Session, name: str) -> Result:
    _require_seen(session, name)
    external = session.lading.catalog.external
    if name == INTERNAL:
        msg = f"The catalog {INTERNAL} was made with the installation, and not by a statement"
        raise ConfigError(msg, left="Nothing was changed.", todo="SHOW CREATE CATALOG shows the others.")
    entry = external.entry(name)
    whole = external.definition(name).properties
    statement = CreateCatalog(name=name, properties=whole, comment=entry.comment or None)
    return table(("Catalog", "CreateCatalog"), [(name, render(mask(statement)))])


def _require_seen(session: Session, name: str) -> None:
    """A catalog that somebody may not see is not there."""
    if not session.sees_catalog(name):
        raise no_catalog(name)
    session.lading.catalog.external.require(name)


def _refuse_internal(name: str, verb: str) -> None:
    if name == INTERNAL:
        msg = f"The catalog {INTERNAL} cannot be {verb}: it is the one of the installation itself"
        raise ConfigError(msg, left="Nothing was changed.", todo="Name another catalog.")


def _refuse_used(session: Session, catalog: str) -> None:
    users = [
        str(stored.record.full_name)
        for stored in session.lading.store.list_jobs()
        if any(_is_in(name, catalog) for name in _touched(stored.record.target, stored.record.spec))
    ]
    if users:
        msg = f"Catalog {catalog} is used by {', '.join(users)}"
        raise ConfigError(msg, left="It was not touched.", todo="Drop those jobs first.")


def _touched(target: str, spec: LoadSpec | None) -> tuple[str, ...]:
    return (target, spec.join.table) if spec is not None and spec.join is not None else (target,)


def _is_in(table_name: str, catalog: str) -> bool:
    database = table_name.rpartition(".")[0]
    return is_external(database) and split_key(database)[0] == catalog


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")
