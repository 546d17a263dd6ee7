"""Columns of typed files in the types that a job hands on, value by value where a whole column does not fit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lading.model.json_text import render_json
from lading.sources.files.arrays import strings
from lading.sources.files.errors import file_unreadable
from lading.sources.records.value_text import tree_of

_FAILS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


def fit_each(
    batch: pa.RecordBatch, schema: pa.Schema, uri: str, *, keeps: bool
) -> tuple[list[pa.Array], dict[str, dict[int, Any]]]:
    """The columns of a schema, and the values that do not fit theirs, where somebody keeps those; else it raises."""
    columns, misfits = list[pa.Array](), dict[str, dict[int, Any]]()
    for field in schema:
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        array = batch.column(place)
        try:
            columns.append(_cast(array, field.type))
        except _FAILS as error:
            if not keeps:
                why = f"column {field.name} is {array.type} and the job expects {field.type}: {error}"
                raise file_unreadable(uri, why) from error
            fitting, misfits[field.name] = _cast_each(array, field.type)
            columns.append(fitting)
    return columns, misfits


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_nested(array.type) and pa.types.is_string(kind):
        return json_texts(array)
    return array.cast(kind)


def json_texts(array: pa.Array) -> pa.Array:
    """Nested values as they are loaded into a column of texts."""
    return strings([None if value is None else render_json(tree_of(value)) for value in array.to_pylist()])


def _cast_each(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, dict[int, Any]]:
    pieces, misfits = list[pa.Array](), dict[int, Any]()
    for at in range(len(array)):
        try:
            pieces.append(array.slice(at, 1).cast(kind))
        except _FAILS:
            misfits[at] = array[at].as_py()
            pieces.append(pa.nulls(1, kind))
    return pa.concat_arrays(pieces), misfits
