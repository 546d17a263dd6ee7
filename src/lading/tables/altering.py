"""Changes of columns, against the columns that a table has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from lading.errors import ConfigError, UnavailableError
from lading.model.field_types import family_of, wider_type
from lading.model.table import ColumnChange
from lading.tables.types import spark_type

MAX_REBASES = 20
"""How often a change steps behind other commits that were faster."""
WIDE_FAMILIES = frozenset(("whole", "real", "decimal"))
"""Whole numbers to larger ones, float to double, decimals to more digits."""


def needed_changes(
    schema: pa.Schema, changes: Sequence[ColumnChange], widens: frozenset[str], where: str
) -> list[ColumnChange]:
    """Those that are not made yet. A column that somebody else added meanwhile is taken as it is, and of two new ones
    that differ by case alone the first is made: no reader opens a table with both.

    Raises ConfigError for what cannot be done to the table.
    """
    known = {field.name.lower(): field for field in schema}
    needed, added = [], set[str]()
    for change in changes:
        field = known.get(change.name.lower())
        if change.is_new:
            if field is None and change.name.lower() not in added:
                if "<" in change.type:
                    why = "a column of a nested type cannot be added to a table that is there"
                    raise _refused(why, change.name, where)
                _check_place(change, known, where)
                needed.append(change)
                added.add(change.name.lower())
        elif field is None:
            msg = f"The table {where} has no column {change.name}"
            raise ConfigError(msg, left="Nothing was changed.", todo=f"It has: {', '.join(schema.names)}.")
        elif (kind := spark_type(field.type)) != change.type and wider_type(change.type, kind) != change.type:
            why = f"{kind} cannot become {change.type} without changing values"
            raise _refused(why, change.name, where)
        elif kind != change.type and family_of(kind) not in widens:
            why = f"{kind} cannot become {change.type} in a table of this format"
            raise _refused(why, change.name, where)
        elif kind != change.type:
            needed.append(change)
    return needed


def _check_place(change: ColumnChange, known: dict[str, pa.Field], where: str) -> None:
    if change.after and change.after.lower() not in known:
        msg = f"The table {where} has no column {change.after}, behind which {change.name} would be"
        names = ", ".join(field.name for field in known.values())
        raise ConfigError(msg, left="Nothing was changed.", todo=f"It has: {names}.")


def _refused(why: str, name: str, where: str) -> ConfigError:
    msg = f"Column {name} of {where}: {why}"
    todo = "Widen whole numbers, floats and decimals where the format allows it; else make a new column."
    return ConfigError(msg, left="Nothing was changed.", todo=todo)


def changed(where: str, attempt: Callable[[], Sequence[ColumnChange] | None]) -> tuple[ColumnChange, ...]:
    """The changes that were made. An attempt gives None when another commit was faster."""
    for _ in range(MAX_REBASES):
        made = attempt()
        if made is not None:
            return tuple(made)
    msg = f"The columns of {where} were not changed: other writers were faster {MAX_REBASES} times"
    raise UnavailableError(msg, left="The table is as it was.", todo="It is tried again.")


def place_of(change: ColumnChange, names: Sequence[str]) -> int:
    """Where a new column goes among the others."""
    if change.after is None:
        return len(names)
    if not change.after:
        return 0
    return [name.lower() for name in names].index(change.after.lower()) + 1
