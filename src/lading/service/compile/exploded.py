"""Loads that take an array apart: which column it is, and a source that gives its elements."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from lading.errors import NotSupportedError, SqlError
from lading.model.load import LoadSpec
from lading.pipeline.exploding import Exploding
from lading.service.compile.windows import row_load
from lading.sources.kind import OpenSource
from lading.sql.expressions.exploding import Explode, one_explode
from lading.sql.statements.load_specs import translate_mapping
from lading.suggest import did_you_mean
from lading.tables.types import spark_type


def exploded_line(read: object) -> list[tuple[str, str]]:
    """What EXPLAIN says of a stage that reads so."""
    if not isinstance(read, Exploding):
        return []
    told = f"one row for each element of {read.column}; the column is that element"
    return [("explode", f"{told}; none of an empty array" if not read.keeps_empty else told)]


def explode_of(load: LoadSpec) -> Explode | None:
    """What a load takes apart. None: nothing. Raises NotSupportedError for what it cannot."""
    translated = translate_mapping(row_load(load))
    columns = translated.columns or ()
    expressions = [column.expression for column in columns] + [translated.preceding_filter, translated.where]
    found = [each for each in expressions if each is not None]
    exploded = one_explode(
        (explode for each in found for explode in each.explodes),
        (name for each in found for name in each.wholes),
        has_star=any(column.is_star for column in columns),
    )
    if exploded is None:
        return None
    kept = {
        "dedup.keys": load.dedup is not None,
        "GROUP BY": load.window is not None,
        "a join": load.join is not None or load.stream_join is not None,
        "schema.evolution and rescued_data_column": load.evolution.is_on,
    }
    if words := [word for word, is_there in kept.items() if is_there]:
        msg = f"explode is not possible together with {words[0]}"
        raise NotSupportedError(msg, todo="Explode into a table of its own first.")
    return exploded


def with_elements(load: LoadSpec, opened: OpenSource) -> OpenSource:
    """The source as the mapping of a load sees it: the column has one element in each row."""
    exploded, schema = explode_of(load), opened.schema
    if exploded is None or schema is None:
        return opened
    name = exploded.column
    place = schema.get_field_index(name)
    if place < 0 or name in opened.told:
        msg = f"Unknown column {name!r} in the source"
        raise SqlError(msg, todo=f"{did_you_mean(name, schema.names)}{opened.knows}")
    kind = schema.field(place).type
    if not (pa.types.is_string(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        msg = f"{name} is {spark_type(kind)}, and only an array, or a text of JSON with one, can be exploded"
        raise SqlError(msg, todo="Name the column with the array.")
    element = kind if pa.types.is_string(kind) else kind.value_type
    return replace(
        opened,
        read=Exploding(read=opened.read, column=name, keeps_empty=exploded.keeps_empty),
        # A record that could not be taken apart may be several rows.
        parse=None,
        schema=schema.set(place, pa.field(name, element)),
    )
