"""Loads whose table grows with their source: what their readers look for, and which loads can do it."""

from __future__ import annotations

import pyarrow as pa

from lading.errors import SqlError
from lading.model.load import LoadSpec
from lading.sources.fields import FieldWatch
from lading.sources.records.spec import records_of
from lading.sources.registry import is_stream
from lading.tables.base import LakeTable
from lading.tables.types import spark_type

_NAMED_FILES = ("csv_with_names", "csv_with_names_and_types", "json", "parquet", "orc")
_NAMED_RECORDS = ("json", "avro", "protobuf")


def watch_of(load: LoadSpec, table: LakeTable) -> FieldWatch | None:
    """What the readers of a load look for; None: they look at the columns of the table alone."""
    asked = load.evolution
    if not asked.is_on:
        return None
    check_evolution(load)
    target, widens = table.schema(), table.widens()
    if asked.mode == "ADD_AND_WIDEN" and not widens:
        msg = f"schema.evolution is ADD_AND_WIDEN, and the format of {load.target} cannot widen columns"
        todo = 'Say "ADD", with a "rescued_data_column" for values that do not fit; Iceberg tables can be widened.'
        raise SqlError(msg, property="schema.evolution", todo=todo)
    rescued = asked.rescued_column
    if rescued:
        _check_rescued(rescued, load.target, target)
    return FieldWatch(
        known={field.name: spark_type(field.type) for field in target},
        rescued_column=rescued,
        adds=asked.mode != "NONE",
        widens=widens if asked.mode == "ADD_AND_WIDEN" else frozenset(),
        reserved=table.reserved_names(),
    )


def takes_all(load: LoadSpec) -> bool:
    """Whether a load fills the table with whatever its source has."""
    columns = load.mapping.columns
    if not load.mapping.is_select:
        return columns is None
    return columns is not None and [column.is_star for column in columns] == [True]


def check_evolution(load: LoadSpec) -> None:
    """Refuse loads that cannot take fields which nobody named."""
    asked = load.evolution
    name = "schema.evolution" if asked.mode != "NONE" else "rescued_data_column"
    if not asked.is_on:
        return
    if not takes_all(load):
        todo = "Write SELECT * without a list of columns." if load.mapping.is_select else "Leave COLUMNS out."
        msg = f"{name} is for jobs that take all fields of their source, and this one names its columns"
        raise SqlError(msg, property=name, todo=todo)
    kept = {"dedup.keys": load.dedup, "GROUP BY": load.window, "JOIN": load.join or load.stream_join}
    for word, found in kept.items():
        if found is not None:
            msg = f"{name} cannot be used with {word}: what is kept between batches has the columns of its table"
            raise SqlError(msg, property=name, todo=f"Leave out {name}, or {word}.")
    if is_stream(load):
        options = records_of(load).options
        form, paths = options.format, bool(options.json.jsonpaths)
    else:
        properties = load.source.properties
        form, paths = properties.get("format", "").lower(), bool(properties.get("jsonpaths"))
    allowed = _NAMED_RECORDS if is_stream(load) else _NAMED_FILES
    if form not in allowed:
        msg = f"{name} needs fields with names, and the format is {form or 'csv'}"
        raise SqlError(msg, property=name, todo=f"It works with {', '.join(allowed)}.")
    if paths:
        msg = f"{name} takes the fields of a document by their names, and jsonpaths chooses others"
        raise SqlError(msg, property=name, todo="Leave out jsonpaths.")


def _check_rescued(name: str, table: str, target: pa.Schema) -> None:
    place = target.get_field_index(name)
    if place < 0:
        msg = f"rescued_data_column names {name}, and {table} has no such column"
        raise SqlError(msg, property="rescued_data_column", todo=f"ALTER TABLE {table} ADD COLUMN {name} STRING")
    field = target.field(place)
    if spark_type(field.type) != "string" or not field.nullable:
        msg = f"rescued_data_column names {name}, which is {spark_type(field.type)}"
        raise SqlError(msg, property="rescued_data_column", todo="Name a column of the type STRING that may be NULL.")
