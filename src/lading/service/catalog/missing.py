"""Tables that are not there, and names that no table can be asked for by."""

from __future__ import annotations

from lading.errors import TableNotFoundError


def check_dots(database: str, name: str) -> None:
    """Joined by dots, a.`b.c` would be `a.b`.c: a table of another namespace, of which nobody asked the rights."""
    if "." in name:
        raise no_table(database, name)


def no_table(database: str, name: str) -> TableNotFoundError:
    """The error for a table that is not there."""
    msg = f"Unknown table '{name}' in database '{database}'"
    return TableNotFoundError(msg, left="Nothing was changed.", todo="See SHOW TABLES, or create it.")
