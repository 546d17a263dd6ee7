"""From a join of two streams to what is read of their rows, kept of them, and written of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from lading.errors import ConfigError, SqlError
from lading.model.load import LoadSpec, StreamJoinSpec
from lading.model.table import Column
from lading.pipeline.mapping import BUCKET, RowMapping, TargetColumn, quoted, reserved_names
from lading.pipeline.state.files import ROW, TIME
from lading.pipeline.state.rules import StreamJoinRule
from lading.pipeline.tasks import Quarantine
from lading.service.compile.event_time import check_names, event_of_source
from lading.service.compile.joins import kept_type
from lading.service.compile.mapping import map_rows, used_names
from lading.service.compile.source_types import source_type
from lading.sql.expressions.mapping import SparkExpression
from lading.sql.expressions.sides import column_of_side, side_column
from lading.sql.expressions.typed import Scope, ScopeColumn, type_expression
from lading.sql.expressions.value_types import MAX_DIGITS, TEXT, Kind, ValueType, check_digits, decimal, type_of_spark
from lading.sql.statements.load_specs import translate_mapping
from lading.sql.statements.stream_joins import stream_keys
from lading.tables.types import arrow_type

_EXACT = type_of_spark("decimal(38,18)")
"""What a text is read as that is compared with a number: keys of many digits are not the same as doubles."""
_SAME = (Kind.TEXT, Kind.BOOLEAN, Kind.INTEGER, Kind.DATE, Kind.DATETIME, Kind.MOMENT)


def stream_columns(load: LoadSpec, join: StreamJoinSpec) -> tuple[str, ...]:
    """The columns of both streams that are read, with their sides."""
    keys = stream_keys(join, load.mapping.source_alias or "", strict_cast=load.session.strict_cast)
    used = [name for pair in keys.keys for each in pair for name in each.columns]
    return tuple(dict.fromkeys([*kept_columns(load, join), *used, *_times(load, join)]))


def kept_columns(load: LoadSpec, join: StreamJoinSpec) -> tuple[str, ...]:
    """Those that are kept until they are joined: what is selected, and what the conditions ask for beside the keys."""
    keys = stream_keys(join, load.mapping.source_alias or "", strict_cast=load.session.strict_cast)
    used = [*used_names(translate_mapping(load)), *(name for part in keys.rest for name in part.columns)]
    left = load.mapping.source_alias or ""
    # In an order of their own: the same columns in another order of SELECT are the same state.
    own = [sorted({name for name in used if column_of_side(name, side) is not None}) for side in (left, join.alias)]
    return (*own[0], *own[1])


def map_stream_rows(load: LoadSpec, join: StreamJoinSpec, source: pa.Schema, knows: str) -> RowMapping:
    """What goes to the spool of a row: columns as they are, then its keys in the form in which they are compared.

    A row of the first stream is one with its event time: rows of the other have nothing in that column, and rows of
    its own that have nothing there are bad.
    """
    if missing := [name for name in stream_columns(load, join) if name not in source.names]:
        msg = f"Unknown column {', '.join(map(repr, missing))} in the streams"
        raise SqlError(msg, todo=knows)
    if reserved := reserved_names(name.partition(".")[2] for name in source.names):
        msg = f"A stream has a column {', '.join(map(repr, reserved))}, a name that Lading itself uses"
        raise ConfigError(msg, left="Nothing was changed.", todo="Rename it in the source.")
    kept = kept_columns(load, join)
    columns = [(kept_type("", source.field(name)), quoted(name)) for name in kept]
    times = [quoted(name) for name in _times(load, join)]
    keys = _keys(load, join, source)
    columns += [(kind, f"CASE WHEN {times[0]} IS NOT NULL THEN {one} ELSE {other} END") for one, other, kind in keys]
    are_there = [" AND ".join(f"({pair[side]}) IS NOT NULL" for pair in keys) for side in (0, 1)]
    # A row without a key matches nothing.
    where = f"CASE WHEN {times[0]} IS NOT NULL THEN {'true' if join.is_left else are_there[0]} ELSE {are_there[1]} END"
    return RowMapping(
        columns=tuple(
            TargetColumn(name=f"__j{n}", type=kind, expression=text) for n, (kind, text) in enumerate(columns)
        ),
        keys=tuple(f"__j{len(kept) + n}" for n in range(len(keys))),
        where=f"coalesce({', '.join(f'CAST({each} AS string)' for each in times)}) IS NULL OR {where}",
        event=_event(load, join, source),
        keeps_late=load.watermark is None or load.watermark.late_rows == "QUARANTINE",
        strict=False,
    )


def stream_join_rule(
    load: LoadSpec,
    join: StreamJoinSpec,
    rows: RowMapping,
    target: pa.Schema,
    lengths: Mapping[str, str],
    open_quarantine: Callable[[str], Quarantine],
) -> StreamJoinRule:
    """How rows are joined, what is kept of them and what is written, checked against the table."""
    check_names(target)
    left, kept = load.mapping.source_alias or "", kept_columns(load, join)
    types = [column.type for column in rows.columns]
    kinds = [arrow_type(Column(name="", type=kind)) for kind in types]
    both = pa.schema([pa.field(name, kind) for name, kind in zip(kept, kinds, strict=False)])
    stored = [*kinds, pa.string(), pa.int64()]
    hidden = [pa.field(TIME, pa.int64()), pa.field(BUCKET, pa.int32()), pa.field(ROW, pa.int64())]
    first = sum(column_of_side(name, left) is not None for name in kept)
    on = stream_keys(join, left, strict_cast=load.session.strict_cast)
    scope = _scope(both)
    rest = [type_expression(part, scope, is_condition=True).text for part in on.rest]
    keys = ", ".join(f"{one.text} = {other.text}" for one, other in on.keys)
    if join.is_left and rest:
        keys += f" and {' and '.join(sorted(rest))}"
    return StreamJoinRule(
        shape=f"rows of two streams{' (LEFT)' if join.is_left else ''} by {keys} from {join.low_us} to {join.high_us} "
        f"microseconds apart over {', '.join(_times(load, join))}: {', '.join(kept)}, types {types}",
        spool_schema=pa.schema([*(pa.field(f"c{n}", kind) for n, kind in enumerate(stored)), *hidden]),
        names=(kept[:first], kept[first:]),
        types=(tuple(types[:first]), tuple(types[first : len(kept)])),
        keys=len(on.keys),
        low_us=join.low_us,
        high_us=join.high_us,
        rest=" AND ".join(f"({text})" for text in rest),
        is_left=join.is_left,
        mapping=map_rows(replace(load, watermark=None), target, lengths, both),
        open_quarantine=open_quarantine,
    )


def _times(load: LoadSpec, join: StreamJoinSpec) -> tuple[str, str]:
    return side_column(load.mapping.source_alias or "", join.times[0]), side_column(join.alias, join.times[1])


def _scope(columns: pa.Schema) -> Scope:
    kinds = {field.name.lower(): source_type(field.type) for field in columns}
    return Scope(
        columns={name: ScopeColumn(type=kind) for name, kind in kinds.items()},
        exact_columns={name: _EXACT for name, kind in kinds.items() if kind == TEXT},
        refuses_longer=True,
    )


def _keys(load: LoadSpec, join: StreamJoinSpec, source: pa.Schema) -> list[tuple[str, str, str]]:
    """What is equal on both sides, and the type in which it is."""
    on = stream_keys(join, load.mapping.source_alias or "", strict_cast=load.session.strict_cast)
    scope = _scope(source)
    found = list[tuple[str, str, str]]()
    for pair in on.keys:
        one, other = (type_expression(each, scope) for each in pair)
        kind = _common(one.type, other.type, pair)
        found.append((f"try_cast({one.text} AS {kind})", f"try_cast({other.text} AS {kind})", kind))
    return found


def _common(one: ValueType, other: ValueType, pair: tuple[SparkExpression, SparkExpression]) -> str:
    """The type in which both are compared. What it cannot hold of one, the other cannot be."""
    if one.kind is other.kind and one.kind in _SAME:
        return one.spark_name
    both = {one.kind, other.kind}
    if both <= {Kind.INTEGER, Kind.DECIMAL}:
        return decimal(MAX_DIGITS, max(one.scale, other.scale)).spark_name
    if both <= {Kind.INTEGER, Kind.DECIMAL, Kind.TEXT}:
        text, number = (0, other) if one.kind is Kind.TEXT else (1, one)
        check_digits(pair[text].text, _EXACT, [number])
        return _EXACT.spark_name
    types = f"{pair[0].text} is of type {one.kind.value} and {pair[1].text} of type {other.kind.value}"
    msg = f"{types}: rows of two streams cannot be found by such keys"
    todo = "Cast both to the same type: STRING, BIGINT, a DECIMAL, DATE or DATETIME."
    raise SqlError(msg, todo=todo)


def _event(load: LoadSpec, join: StreamJoinSpec, source: pa.Schema) -> TargetColumn:
    """The event time of a row of either stream."""
    names = _times(load, join)
    one, other = (event_of_source(load, source.field(name)) for name in names)
    told = " or ".join(names)
    if (one.type, one.is_text) == (other.type, other.is_text):
        return replace(one, name=told, expression=f"coalesce({one.expression}, {other.expression})")
    zone = load.session.time_zone or "UTC"
    typed = other if one.is_text else one
    if one.is_text != other.is_text and typed.type != "timestamp" and zone != "UTC":
        msg = f"{told}: one is a text, which is a time in {zone}, and the other a time without a zone, which is in UTC"
        todo = 'Give both streams times of one form, or leave "session.time_zone" out.'
        raise SqlError(msg, property="watermark.column", todo=todo)
    texts = [f"CAST({each.expression} AS string)" for each in (one, other)]
    return TargetColumn(name=told, type="timestamp", expression=f"coalesce({', '.join(texts)})", is_text=True)
