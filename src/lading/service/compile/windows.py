"""From GROUP BY window(…) to what is computed of rows, kept of windows and written of results."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa

from lading.model.load import AggregateSpec, ColumnSpec, LoadSpec, WindowSpec
from lading.model.table import Column
from lading.pipeline.mapping import BUCKET, RowMapping
from lading.pipeline.state.aggregates import Part, aggregate_of, input_type
from lading.pipeline.state.files import ROW, TIME
from lading.pipeline.state.rules import RESULT_END, RESULT_START, START, WindowRule
from lading.service.compile.mapping import map_rows, map_values
from lading.tables.types import arrow_type

_STRUCT = re.compile(r"struct<(.*)>")
_ORDER = f"named_struct('t', {TIME}, 'r', {ROW})"
_MOMENT = pa.timestamp("us", tz="UTC")


def row_load(load: LoadSpec) -> LoadSpec:
    """What a load reads of rows: for windows, keys and inputs of aggregates; else the load itself."""
    window = load.window
    if window is None:
        return load
    texts = [*window.keys, *(window.inputs[number] for number, _ in _inputs(window)), _quoted(window.time)]
    columns = tuple(ColumnSpec(expression=text) for text in texts)
    return replace(load, mapping=replace(load.mapping, columns=columns, target_columns=()))


def map_window_rows(load: LoadSpec, window: WindowSpec, source: pa.Schema, knows: str) -> RowMapping:
    """Keys, then inputs of aggregates: what goes to the spool of a row."""
    rows = row_load(load)
    columns = (rows.mapping.columns or ())[:-1]  # The time is the event time of the row.
    kinds: list[Callable[[str], str]] = [str] * len(window.keys)
    kinds += [partial(input_type, function) for _, function in _inputs(window)]
    mapping = map_values(replace(rows, mapping=replace(rows.mapping, columns=columns)), source, kinds, knows)
    keys = tuple(column.name for column in mapping.columns[: len(window.keys)])
    # A row that is not behind the watermark cannot belong to a session that has closed, and one behind it could.
    return replace(mapping, keys=keys, window_us=None if window.is_session else (window.size_us, window.slide_us))


def window_rule(
    load: LoadSpec, window: WindowSpec, rows: RowMapping, target: pa.Schema, lengths: Mapping[str, str]
) -> WindowRule:
    """What is kept, and what is written when a window closes. Checked against the table."""
    types, places, first = [column.type for column in rows.columns], _inputs(window), len(window.keys)
    parts, results = list[Part](), list[tuple[str, str]]()
    for spec in window.aggregates:
        taken = [first + places[number, spec.function] for number in spec.inputs]
        values = [(f"c{place}", types[place]) for place in taken]
        found = aggregate_of(spec.function, values, _ORDER, spec.parameter)
        names = [f"p{len(parts) + n}" for n in range(len(found.parts))]
        parts += found.parts
        results.append((found.result.format(*names), found.type))
    keys = [_arrow(kind) for kind in types[:first]]
    kept = [pa.field(f"p{n}", _arrow(part.type)) for n, part in enumerate(parts)]
    hidden = [pa.field(TIME, pa.int64()), pa.field(BUCKET, pa.int32())]
    told = [pa.field(f"g{n}", kind) for n, kind in enumerate(keys)]
    told += [pa.field(f"r{n}", _arrow(kind)) for n, (_, kind) in enumerate(results)]
    told += [pa.field(RESULT_START, _MOMENT), pa.field(RESULT_END, _MOMENT)]
    made = replace(load, mapping=replace(load.mapping, where=window.having, source_alias=None))
    spooled = [pa.field(column.name, _arrow(column.type)) for column in rows.columns]
    starts = [*(pa.field(f"k{n}", kind) for n, kind in enumerate(keys)), pa.field(START, pa.int64())]
    shown = ", ".join(f"{spec.function}{spec.inputs}{_parameter(spec)}" for spec in window.aggregates)
    what = f"windows of {window.size_us} every {window.slide_us} microseconds over {window.time}"
    if window.is_session:
        what = f"sessions with gaps of {window.size_us} microseconds over {window.time}"
    return WindowRule(
        shape=f"{what}, keys {window.keys}, inputs {window.inputs}, aggregates {shown}, types {types}, "
        f"kept as {[part.type for part in parts]}",
        size_us=window.size_us,
        slide_us=window.slide_us,
        is_session=window.is_session,
        keys=first,
        spool_schema=pa.schema([*spooled, *hidden, pa.field(ROW, pa.int64())]),
        state_schema=pa.schema([*starts, *kept, *hidden]),
        parts=tuple(parts),
        results=tuple(results),
        mapping=map_rows(made, target, lengths, pa.schema(told)),
    )


def _parameter(spec: AggregateSpec) -> str:
    return "" if spec.parameter is None else f" with {spec.parameter:g}"


def _inputs(window: WindowSpec) -> dict[tuple[int, str], int]:
    """Inputs as aggregates take them, each with its place: a text that is added up is a number, and else a text."""
    asked = [(number, spec.function) for spec in window.aggregates for number in spec.inputs]
    return {each: place for place, each in enumerate(dict.fromkeys(asked))}


def _arrow(kind: str) -> pa.DataType:
    if kind.startswith("array<"):
        return pa.list_(_arrow(kind[len("array<") : -1]))
    found = _STRUCT.fullmatch(kind)
    if found is None:
        return arrow_type(Column(name="", type=kind))
    fields, depth, start = list[pa.Field](), 0, 0
    for place, letter in enumerate(found[1] + ","):
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            name, _, inner = found[1][start:place].partition(":")
            fields.append(pa.field(name, _arrow(inner)))
            start = place + 1
    return pa.struct(fields)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
