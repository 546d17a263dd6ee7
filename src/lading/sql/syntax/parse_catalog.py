"""Catalogs."""

from __future__ import annotations

from lading.errors import SqlError
from lading.model.names import INTERNAL
from lading.sql.statements.catalogs import (
    AlterCatalog,
    CreateCatalog,
    DropCatalog,
    RefreshCatalog,
    ShowCatalogs,
    ShowCreateCatalog,
    SwitchCatalog,
)
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.names import check_object_name


def parse_create_catalog(cursor: Cursor) -> CreateCatalog:
    """CREATE CATALOG [IF NOT EXISTS] name [COMMENT '…'] PROPERTIES (…)"""
    cursor.expect("CREATE", "CATALOG")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = _new_name(cursor)
    comment = cursor.string("a comment in quotes") if cursor.accept("COMMENT") else None
    cursor.expect("PROPERTIES")
    return CreateCatalog(name=name, properties=cursor.properties(), comment=comment, if_not_exists=if_not_exists)


def parse_alter_catalog(cursor: Cursor) -> AlterCatalog:
    """ALTER CATALOG name SET PROPERTIES (…) | RENAME other | MODIFY COMMENT '…'"""
    cursor.expect("ALTER", "CATALOG")
    name = _name(cursor)
    if cursor.accept("SET", "PROPERTIES"):
        return AlterCatalog(name=name, properties=cursor.properties())
    if cursor.accept("RENAME"):
        return AlterCatalog(name=name, new_name=_new_name(cursor))
    if not cursor.accept("MODIFY", "COMMENT"):
        cursor.fail("SET PROPERTIES", "RENAME", "MODIFY COMMENT")
    return AlterCatalog(name=name, comment=cursor.string("a comment in quotes"))


def parse_drop_catalog(cursor: Cursor) -> DropCatalog:
    """DROP CATALOG [IF EXISTS] name"""
    cursor.expect("DROP", "CATALOG")
    if_exists = cursor.accept("IF", "EXISTS")
    return DropCatalog(name=_name(cursor), if_exists=if_exists)


def parse_show_catalogs(cursor: Cursor) -> ShowCatalogs:
    """SHOW CATALOGS"""
    cursor.expect("SHOW", "CATALOGS")
    return ShowCatalogs()


def parse_show_create_catalog(cursor: Cursor) -> ShowCreateCatalog:
    """SHOW CREATE CATALOG name"""
    cursor.expect("SHOW", "CREATE", "CATALOG")
    return ShowCreateCatalog(name=_name(cursor))


def parse_switch(cursor: Cursor) -> SwitchCatalog:
    """SWITCH name"""
    cursor.expect("SWITCH")
    return SwitchCatalog(name=_name(cursor))


def parse_refresh_catalog(cursor: Cursor) -> RefreshCatalog:
    """REFRESH CATALOG name"""
    cursor.expect("REFRESH", "CATALOG")
    return RefreshCatalog(name=_name(cursor))


def _name(cursor: Cursor) -> str:
    return cursor.identifier("the name of a catalog")


def _new_name(cursor: Cursor) -> str:
    span = cursor.token.span
    name = _name(cursor)
    check_object_name(name, "catalog", span)
    if name.lower() == INTERNAL:
        msg = f"A catalog cannot be called {INTERNAL}: that is the one of the installation itself"
        raise SqlError(msg, place=span, hint="taken", todo="Choose another name.")
    return name
