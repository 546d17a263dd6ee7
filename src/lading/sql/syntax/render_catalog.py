"""Statements about catalogs to text."""

from __future__ import annotations

from typing import assert_never

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
from lading.sql.syntax.render_parts import comment_text, properties_text, quoted_name


def catalog_text(it: CatalogStatement) -> str:
    """The canonical text of a statement about catalogs."""
    match it:
        case CreateCatalog():
            head = f"CREATE CATALOG {'IF NOT EXISTS ' if it.if_not_exists else ''}{quoted_name(it.name)}"
            lines = [head, *([comment_text(it.comment)] if it.comment is not None else [])]
            return "\n".join([*lines, f"PROPERTIES {properties_text(it.properties)}"])
        case AlterCatalog():
            return f"ALTER CATALOG {quoted_name(it.name)} {_change(it)}"
        case DropCatalog():
            return f"DROP CATALOG {'IF EXISTS ' if it.if_exists else ''}{quoted_name(it.name)}"
        case ShowCatalogs():
            return "SHOW CATALOGS"
        case ShowCreateCatalog():
            return f"SHOW CREATE CATALOG {quoted_name(it.name)}"
        case SwitchCatalog():
            return f"SWITCH {quoted_name(it.name)}"
        case RefreshCatalog():
            return f"REFRESH CATALOG {quoted_name(it.name)}"
        case _:
            assert_never(it)


def _change(it: AlterCatalog) -> str:
    if it.properties is not None:
        return f"SET PROPERTIES {properties_text(it.properties)}"
    if it.new_name is not None:
        return f"RENAME {quoted_name(it.new_name)}"
    return f"MODIFY {comment_text(it.comment or '')}"
