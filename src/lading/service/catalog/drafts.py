"""A table that a statement would make, for those who only want to know what would become of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lading.deferred import deferred
from lading.model.names import is_external
from lading.model.s3_access import S3Access
from lading.service.catalog.adoption import adopted_table, check_free
from lading.service.catalog.external import check_external_table
from lading.service.catalog.reach import is_reach
from lading.service.catalog.tables import TableCatalog
from lading.sql.statements.tables import CreateTable
from lading.storage.store import open_store
from lading.store.records import TableEntry
from lading.tables.base import LakeTable
from lading.tables.kind import TablePlace

if TYPE_CHECKING:
    from lading.tables.registry import kind_of_statement
else:
    kind_of_statement = deferred("lading.tables.registry", "kind_of_statement")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTable:
    """A table as the statement would make it, empty; or the one that is at its location and would be taken."""

    table: LakeTable
    entry: TableEntry
    is_adopted: bool


@contextmanager
def drafted_table(
    catalog: TableCatalog,
    statement: CreateTable,
    database: str,
    *,
    others: Sequence[str],
    is_trusted: bool,
    at: datetime,
) -> Iterator[DraftTable]:
    """Everything that CREATE TABLE checks without writing to the table's place, and a table to try rows with.

    It is made in a folder of its own, which goes with the block. Dies in the block: a folder among the temporary files
    of the machine, without a row. The home, its store and the place of the table are only read.

    `others` are the places of other tables; `is_trusted`: the user may name any host.
    """
    catalog.require_database(database)
    kind, name = kind_of_statement(statement), statement.name.name
    reach = {key: value for key, value in statement.properties.items() if is_reach(key)}
    rest = {key: value for key, value in statement.properties.items() if not is_reach(key)}
    location, there = "", None
    if is_external(database):
        check_external_table(statement, database)
    else:
        location = catalog.new_place(statement, database)
    statement = replace(statement, properties=rest)
    if statement.location is not None and not catalog.is_own_place(location, database, name):
        access = replace(catalog.options_for(reach, is_trusted=is_trusted), within=location)
        there = _table_at(statement, location, others, access)
    entry = TableEntry(
        database=database,
        name=name,
        format=kind.name,
        location=location,
        spec=statement.spec if statement.columns else None,
        created_at=at,
    )
    with tempfile.TemporaryDirectory(prefix="lading-draft-") as folder:
        if there is not None:
            yield DraftTable(table=there, entry=entry, is_adopted=True)
            return
        place = TablePlace(home=Path(folder), name=f"draft.{name}", location=f"{folder}/table")
        kind.create(place, statement.spec)
        yield DraftTable(table=kind.open(place), entry=entry, is_adopted=False)


def _table_at(statement: CreateTable, location: str, others: Sequence[str], access: S3Access) -> LakeTable | None:
    """The table that is there and would be taken; None when the place is free. Refuses places of others."""
    kind = kind_of_statement(statement)
    place = TablePlace(home=Path(), name=str(statement.name), location=location, options=access, is_adopted=True)
    storage = open_store(location, access)
    found = adopted_table(statement, kind, location, others, storage, lambda: kind.open(place))
    if found is None:
        check_free(kind, location, others, lambda at: open_store(at, replace(access, within=at)))
    return found
