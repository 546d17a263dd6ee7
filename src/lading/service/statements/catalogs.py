"""CREATE, ALTER, DROP and SHOW CATALOG, SWITCH."""

from __future__ import annotations

from datetime import datetime

from lading.errors import ConfigError
from lading.model.load import LoadSpec
from lading.model.names import INTERNAL, is_external, split_key
from lading.service.catalog.definitions import read_definition
from lading.service.result import Result, done, table
from lading.service.security.privileges import grant_statement
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
from lading.store.records import GrantEntry

_COLUMNS = ("CatalogId", "CatalogName", "Type", "IsCurrent", "CreateTime", "LastUpdateTime", "Comment")
"""As Doris has them."""
_STAY = "stay, and hold for another catalog of that name"
_SHOWN = 10


def execute_catalog_statement(session: Session, statement: CatalogStatement) -> Result:
    external = session.lading.catalog.external
    match statement:
        case CreateCatalog():
            named = read_definition(statement.properties).hosts
            session.lading.endpoints.check_named(named, user=session.user, is_admin=session.is_admin)
            is_new = all(entry.name != statement.name for entry in external.entries())
            external.create(statement)
            if is_new:
                return done(f"OK{_old_grants(session, statement.name, 'hold for it')}")
        case AlterCatalog():
            _refuse_internal(statement.name, "altered")
            if statement.new_name is not None:
                _refuse_used(session, statement.name)
            external.alter(statement)
            if statement.new_name is not None:
                held = _old_grants(session, statement.new_name, "hold for it under its new name")
                return done(f"OK{_old_grants(session, statement.name, _STAY)}{held}")
        case DropCatalog():
            _refuse_internal(statement.name, "dropped")
            if statement.if_exists and all(entry.name != statement.name for entry in external.entries()):
                return done()
            _refuse_used(session, statement.name)
            external.drop(statement.name)
            return done(f"OK{_old_grants(session, statement.name, _STAY)}")
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


def _old_grants(session: Session, catalog: str, fate: str) -> str:
    """Grants outlive what they name, as in MySQL. A catalog of the same name may be quite another lake."""
    store = session.lading.store
    grants = [grant_statement(entry) for entry in store.list_grants() if _is_on(entry, catalog)]
    grants += [grant_statement(entry, is_role=True) for entry in store.list_role_grants() if _is_on(entry, catalog)]
    if not grants:
        return ""
    more = f" and {len(grants) - _SHOWN} more" if len(grants) > _SHOWN else ""
    listed = "; ".join(grants[:_SHOWN])
    return f". Warning: grants on {catalog} {fate}: {listed}{more}. REVOKE those that shall not."


def _is_on(entry: GrantEntry, catalog: str) -> bool:
    return is_external(entry.database) and split_key(entry.database)[0] == catalog


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
    if spec is None:
        return (target,)
    joined = spec.join.table if spec.join is not None else ""
    return tuple(name for name in (target, joined, spec.errors_table) if name)


def _is_in(table_name: str, catalog: str) -> bool:
    database = table_name.rpartition(".")[0]
    return is_external(database) and split_key(database)[0] == catalog


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")
