"""Partition values of a Delta table: as text in the log, and as folder names."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from lading.errors import TableError
from lading.tables.folders import short_folders

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


def render_values(column: pa.Array) -> pa.Array:
    """One text per row as the Delta protocol writes partition values.

    An empty text means null in Delta, for every type. An empty string is therefore filed under null, as Spark does.
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        # Microseconds are always written out. A value with a time zone is in UTC and says so: readers take one that
        # says nothing in the zone of their own session.
        form = "%Y-%m-%dT%H:%M:%SZ" if kind.tz else "%Y-%m-%d %H:%M:%S"
        text = pc.strftime(column.cast(pa.timestamp("us", tz="UTC" if kind.tz else None)), format=form)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = pc.if_else(pc.equal(column, ""), pa.scalar(None, kind), column)
    elif pa.types.is_binary(kind) or pa.types.is_nested(kind):
        msg = f"Lading cannot partition a Delta table by a column of type {kind}"
        raise TableError(msg, left="Nothing was written.", todo="Partition by another column.")
    else:
        text = column
    return text.cast(pa.string())


def folder_of(names: Sequence[str], values: Sequence[str | None]) -> str:
    """`column=value/…`, everything but letters, digits and `_.-~` as percent and hexadecimal.

    For people: readers take the values from the log; see `short_folders` for one that does not.
    """
    parts = zip(names, values, strict=True)
    return short_folders(
        [f"{quote(name, safe='')}={NULL_FOLDER if value is None else quote(value, safe='')}" for name, value in parts]
    )
