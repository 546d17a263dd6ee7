"""A table that is there already: CREATE TABLE … LOCATION without columns takes it as it is, as in Spark.

Nothing in the table is changed, not even a card is left in it: the store alone knows its name. `lading recover
database.table=location` gives it back when the store is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from lading.deferred import deferred
from lading.errors import ConfigError, ConflictError, StorageError, TableError, TableNotFoundError
from lading.sql.statements.tables import CreateTable
from lading.storage.errors import DENIED, fault_of
from lading.storage.store import ObjectStore
from lading.tables.manifest import KEY as CARD
from lading.tables.manifest import place_path

if TYPE_CHECKING:
    from lading.tables.base import LakeTable
    from lading.tables.kind import TableKind
    from lading.tables.registry import all_kinds
else:
    all_kinds = deferred("lading.tables.registry", "all_kinds")

_LEFT = "Nothing was changed."
_LOOKED_AT = 10_000
"""So many objects below a new table's place are looked at: it may be the root of a large bucket."""


def is_adoption(statement: CreateTable, kind: TableKind, storage: ObjectStore, *, has_card: bool) -> bool:
    """Whether the statement is about a table that is there.

    One without columns always is. One with columns is, when somebody else's table is at its location: Lading's own
    tables, which have a card, may be of a store that was lost, and are recovered rather than adopted.
    """
    if statement.columns:
        return not has_card and not kind.catalog and kind.name in formats_at(storage)
    if kind.catalog:
        msg = f"A {kind.title} table is not adopted by its location: its catalog says which metadata is the newest"
        raise ConfigError(msg, left=_LEFT, todo="Make its catalog known (CREATE CATALOG), and name it there.")
    if statement.comment is not None or any(not key.startswith(("s3.", "use_path_")) for key in statement.properties):
        msg = f"Table {statement.name.name} is there already: COMMENT and TBLPROPERTIES would change it"
        todo = "Leave them out, but for s3.… properties, which say how it is reached. Change it with its own engine."
        raise ConfigError(msg, left=_LEFT, todo=todo)
    return True


def adopted_table(
    statement: CreateTable,
    kind: TableKind,
    location: str,
    others: Iterable[str],
    storage: ObjectStore,
    open_there: Callable[[], LakeTable],
) -> LakeTable | None:
    """The table that is there and that the statement takes. None: the statement makes one. Changes nothing."""
    if not is_adoption(statement, kind, storage, has_card=storage.get(CARD) is not None):
        return None
    check_there(kind, storage)
    check_alone(location, others)
    lake = open_there()
    check_columns(statement, kind, lake)
    return lake


def formats_at(storage: ObjectStore) -> list[str]:
    """The formats of which a table is at a place."""
    return [kind.name for kind in all_kinds() if next(iter(storage.keys(f"{kind.folder}/")), None) is not None]


def check_there(kind: TableKind, storage: ObjectStore) -> None:
    """Refuse a place without a table of this format. Raises TableNotFoundError or TableError."""
    found = formats_at(storage)
    if kind.name in found:
        return
    if found:
        msg = f"At {storage.uri} is a table, but of the format {found[0]} and not {kind.name}"
        raise TableError(msg, left=_LEFT, todo=f"Write USING {found[0]}.")
    msg = f"There is no {kind.title} table at {storage.uri}"
    todo = "Correct the location; to make a new table there, write its columns."
    raise TableNotFoundError(msg, left=_LEFT, todo=todo)


def check_free(kind: TableKind, location: str, others: Iterable[str], open_at: Callable[[str], ObjectStore]) -> None:
    """Refuse a place for a new table that another table has, or that is inside or around one: the tables that Lading
    knows are at `others`. Engines would take the files of each for orphans of the other.
    """
    check_alone(location, others)
    storage = open_at(location)
    # What has a card is Lading's own, and told from a new table where it is made.
    has_card = storage.get(CARD) is not None
    if found := [name for name in formats_at(storage) if name != kind.name or (kind.catalog and not has_card)]:
        msg = f"At {location} are already files of another table, of the format {found[0]}"
        raise ConflictError(msg, code="TableExists", left="It was not touched.", todo="Choose another location.")
    _check_among_unknown(location, open_at)


def check_columns(statement: CreateTable, kind: TableKind, lake: LakeTable) -> None:
    """Columns that the statement names are those of the table, in its order. Raises ConflictError."""
    if not statement.columns:
        return
    wanted, there = kind.schema_of(statement.spec), lake.schema()
    for at in range(max(len(wanted), len(there))):
        one = wanted.field(at) if at < len(wanted) else None
        other = there.field(at) if at < len(there) else None
        if one is None or other is None or not one.equals(other):
            raise _misfit(lake, f"column {at + 1} is {other or 'none'} there, and {one or 'none'} in the statement")
    wanted_parts = tuple((field.column, field.transform) for field in statement.spec.partition_by)
    parts = lake.writer_spec().partition_by
    if wanted_parts != parts:
        raise _misfit(lake, f"it is partitioned by {_named(parts)}, and by {_named(wanted_parts)} in the statement")


def check_alone(location: str, others: Iterable[str]) -> None:
    """Refuse a place inside the place of another table, or around it: one of them would clean up the other."""
    for other in others:
        one, two = _comparable(location), _comparable(other)
        if one.startswith(two) or two.startswith(one):
            # Not by its name: the user may not be allowed to see it.
            msg = f"At {location} are already files of another table"
            raise ConflictError(msg, code="TableExists", left="It was not touched.", todo="Choose another location.")


def _check_among_unknown(location: str, open_at: Callable[[str], ObjectStore]) -> None:
    """The same for tables that Lading does not know, since others made them. A place above that may not be read is
    passed over: who may write in a folder need not see the folders around it.
    """
    below = (key for key in islice(open_at(location).keys(""), _LOOKED_AT))
    if any(re.fullmatch(f".+/{kind.marker}", key) for key in below for kind in all_kinds()):
        raise _among(location, "below it")
    for above in _places_above(place_path(location)):
        try:
            is_table = _is_table(open_at(above))
        except StorageError as error:
            if fault_of(error) != DENIED and not isinstance(error.__cause__, PermissionError):
                raise
            continue
        if is_table:
            raise _among(location, "around it")


def _is_table(storage: ObjectStore) -> bool:
    return any(
        re.fullmatch(kind.marker, key)
        for kind in all_kinds()
        for key in islice(storage.keys(f"{kind.folder}/"), _LOOKED_AT)
    )


def _places_above(place: str) -> Iterator[str]:
    """From the nearest one to the root of the disk or the bucket, which is none."""
    scheme, separator, path = place.rpartition("://")
    while "/" in (path := path.rpartition("/")[0]) or (separator and path):
        yield f"{scheme}{separator}{path}"


def _among(location: str, where: str) -> ConflictError:
    msg = f"At {location}, {where}, are already files of another table"
    todo = "Choose another location: engines take files of a table inside another one for orphans."
    return ConflictError(msg, code="TableExists", left="It was not touched.", todo=todo)


def _comparable(location: str) -> str:
    return place_path(location).rstrip("/") + "/"


def _named(parts: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(column for column, _ in parts) or "nothing"


def _misfit(lake: LakeTable, why: str) -> ConflictError:
    msg = f"There is already a table at {lake.location}, and it is not the one that the statement describes: {why}"
    todo = "Leave the columns out to adopt it as it is, or choose another location."
    return ConflictError(msg, code="TableExists", left="It was not touched.", todo=todo)
