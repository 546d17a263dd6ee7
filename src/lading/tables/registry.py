"""All table formats, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

from lading.errors import ConfigError, SqlError
from lading.model.catalog import CatalogAccess
from lading.sql.statements.tables import CreateTable
from lading.suggest import did_you_mean
from lading.tables.base import Writer, WriterSpec
from lading.tables.catalog_namespaces import CatalogNamespaces
from lading.tables.kind import TableKind

_MODULES: Mapping[str, str] = {
    "delta": "lading.tables.delta.kind",
    "iceberg": "lading.tables.iceberg.kind",
    "paimon": "lading.tables.paimon.kind",
}
NAMES: tuple[str, ...] = tuple(_MODULES)
"""As USING writes them."""
IN_CATALOGS = "iceberg"
"""What tables of catalogs that others keep are."""


def kind_of(name: str) -> TableKind:
    """A format by its name. Raises ConfigError."""
    if name not in _MODULES:
        msg = f"Unknown table format '{name}'"
        raise ConfigError(msg, left="Nothing was changed.", todo=f"Known formats: {', '.join(NAMES)}.")
    kind: TableKind = import_module(_MODULES[name]).KIND
    return kind


def kind_in_catalogs() -> TableKind:
    """The format of tables in catalogs that others keep."""
    return kind_of(IN_CATALOGS)


def kind_of_statement(statement: CreateTable) -> TableKind:
    """The format that USING names. Raises SqlError."""
    if statement.format in NAMES:
        return kind_of(statement.format)
    words = [name.upper() for name in NAMES]
    wanted = f"expected {', '.join(words[:-1])} or {words[-1]}"
    msg = f"mismatched input '{statement.format}', {wanted}"
    todo = did_you_mean(statement.format, words).strip() or "Correct the statement."
    raise SqlError(msg, place=statement.format_span, hint=wanted, todo=todo, expected=tuple(words))


def all_kinds() -> Sequence[TableKind]:
    return [kind_of(name) for name in NAMES]


def open_writer(spec: WriterSpec, attempt: str) -> Writer:
    """The executors' door to all formats: a writer for one attempt."""
    return kind_of(spec.format).open_writer(spec, attempt)


def task_modules(name: str) -> tuple[str, ...]:
    """What `open_writer` imports, for processes that import before they are asked to write."""
    kind = _MODULES[name]
    return (kind, f"{kind.rpartition('.')[0]}.writer")


def open_namespaces(access: CatalogAccess) -> CatalogNamespaces:
    """What a catalog that others keep has. Raises what says that it cannot be reached, or not with this token."""
    namespaces: CatalogNamespaces = import_module("lading.tables.iceberg.namespaces").IcebergNamespaces(access)
    return namespaces
