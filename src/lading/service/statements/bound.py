"""Names as a session means them, written out: a job means the same in every session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lading.service.session import Session
from lading.sql.statements.parts import InsertSelect, QualifiedName


def database_of(session: Session, name: QualifiedName) -> str:
    """The database that a name means, with its catalog."""
    return name.within(session.database)


def bound_names(
    session: Session, insert: InsertSelect, *, grows: bool = False, known: Sequence[str] = ()
) -> InsertSelect:
    """The same with the columns that it fills by name: those that others add to the table later are not among them.

    A job that `grows` with its source names none: it takes those, too. `known`: those of a table that is not made yet.
    """
    database = database_of(session, insert.table)
    insert = replace(insert, table=insert.table.bound(session.database))
    if insert.join is not None:
        insert = replace(insert, join=replace(insert.join, table=insert.join.table.bound(session.database)))
    if insert.columns or grows:
        return insert
    names = known or session.lading.catalog.open_table(database, insert.table.name).schema().names
    return replace(insert, columns=tuple(names))
