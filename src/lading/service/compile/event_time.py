"""Event time and state of a load: which column says when a row happened, and what is kept of rows between batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pyarrow as pa

from lading.errors import SqlError
from lading.model.job import WatermarkRule
from lading.model.load import LoadSpec
from lading.pipeline.mapping import BUCKET, EVENT, RowMapping, TargetColumn, quoted, reserved_names
from lading.pipeline.stage import Stage
from lading.pipeline.state.files import StatePlace, StateWriter
from lading.pipeline.state.partials import Partials, PartialsWriter, partials_of
from lading.pipeline.state.rules import DedupRule, StateRule, StateStage, StreamJoinRule, WindowRule
from lading.pipeline.tasks import Writer
from lading.service.compile.mapping import zoned
from lading.service.compile.source_types import source_type
from lading.sql.expressions.value_types import TEXT
from lading.tables.types import is_nested, spark_type

_TIMES = ("timestamp", "timestamp_ntz", "date")
_MICROS = 1_000_000


def watermark_rule(load: LoadSpec) -> WatermarkRule | None:
    """How the watermark of a load moves."""
    spec = load.watermark
    if spec is None:
        return None
    return WatermarkRule(
        delay_us=round(spec.delay_s * _MICROS),
        idle_s=spec.idle_s or None,
        max_future_us=round(spec.max_future_s * _MICROS) or None,
    )


def with_event_time(mapping: RowMapping, load: LoadSpec, source: pa.Schema) -> RowMapping:
    """The mapping of a load that has a watermark: it says the event time of each row."""
    spec = load.watermark
    if spec is None:
        return mapping
    return replace(mapping, event=_event(mapping, load, source), keeps_late=spec.late_rows == "QUARANTINE")


def _event(mapping: RowMapping, load: LoadSpec, source: pa.Schema) -> TargetColumn:
    name = load.watermark.column if load.watermark else ""
    target = next((column for column in mapping.columns if column.name.lower() == name.lower()), None)
    if target is not None:
        if target.type not in _TIMES:
            raise _no_time(name, target.type)
        if target.expression is None:
            msg = f"watermark.column is {name}, and the job does not fill this column of the table"
            raise SqlError(msg, property="watermark.column", todo="Fill it, or name another column.")
        return target
    field = next((field for field in source if field.name.lower() == name.lower()), None)
    if field is None:
        msg = f"watermark.column is {name}, and neither the table nor the source has this column"
        todo = f"The table has: {', '.join(column.name for column in mapping.columns)}."
        raise SqlError(msg, property="watermark.column", todo=todo)
    return event_of_source(load, field)


def event_of_source(load: LoadSpec, field: pa.Field) -> TargetColumn:
    """The event time in a column of the source. Raises SqlError for one that has no times."""
    is_text = source_type(field.type) == TEXT
    if not is_text and spark_type(field.type) not in _TIMES:
        raise _no_time(field.name, spark_type(field.type))
    text, kind = quoted(field.name), "timestamp" if is_text else spark_type(field.type)
    zone = load.session.time_zone or "UTC"
    return TargetColumn(
        name=field.name, type=kind, expression=zoned(text, kind, zone) if is_text else text, is_text=is_text
    )


def _no_time(name: str, kind: str) -> SqlError:
    msg = f"watermark.column is {name}, a column of type {kind}: that is no time"
    return SqlError(msg, property="watermark.column", todo="Name a column of type DATETIME, TIMESTAMP or DATE.")


def state_rule(load: LoadSpec, target: pa.Schema, mapping: RowMapping) -> DedupRule | None:
    """What a load keeps of its rows; None: nothing. Raises SqlError."""
    spec = load.dedup
    if spec is None or load.watermark is None:
        return None
    check_names(target)
    known = {name.lower(): name for name in target.names}
    if unknown := [name for name in spec.keys if name.lower() not in known]:
        msg = f"dedup.keys names {', '.join(unknown)}, which the table does not have"
        raise SqlError(msg, property="dedup.keys", todo=f"It has: {', '.join(target.names)}.")
    keys = tuple(known[name.lower()] for name in spec.keys)
    if inexact := [name for name in keys if pa.types.is_floating(target.field(name).type)]:
        msg = f"dedup.keys names {', '.join(inexact)}, a FLOAT or DOUBLE: such values are not the same twice"
        raise SqlError(msg, property="dedup.keys", todo="Name columns of other types.")
    if empty := [column.name for column in mapping.columns if column.name in keys and column.expression is None]:
        msg = f"dedup.keys names {', '.join(empty)}, which the job does not fill: all its rows would be the same"
        raise SqlError(msg, property="dedup.keys", todo="Fill it, or name other columns.")
    return DedupRule(keys=keys, horizon_us=round(spec.horizon_s * _MICROS), time=load.watermark.column)


def check_names(target: pa.Schema) -> None:
    """Refuse tables whose columns are called as what a job with state adds to rows. Raises SqlError."""
    if taken := reserved_names(target.names):
        msg = f"The table has a column {', '.join(taken)}, a name that Lading itself uses for jobs that keep state"
        raise SqlError(msg, todo="Rename it in the table.")


def with_state(stage: Stage, rule: StateRule | None, target: pa.Schema, place: StatePlace) -> Stage:
    """The stage of a load with state: its rows go to a spool first, and say which bucket they belong to."""
    if rule is None:
        return stage
    if nested := [field.name for field in target if is_nested(field.type)]:
        msg = f"A job that keeps state, or joins, cannot load into ARRAY, MAP and STRUCT: {', '.join(nested)}"
        raise SqlError(msg, todo="Leave the column out, INSERT INTO t (the other columns); or make it a STRING.")
    tools = replace(
        stage.tools,
        open_writer=_opener(rule, place),
        spools=True,
        columns=(*stage.tools.columns, EVENT, BUCKET),
    )
    state = StateStage(rule=rule, place=place, schema=target, open_table=stage.tools.open_writer)
    if isinstance(rule, DedupRule):
        stage = replace(stage, mapping=replace(stage.mapping, keys=rule.keys))
    return replace(stage, tools=tools, state=state)


def _opener(rule: StateRule, place: StatePlace) -> Callable[[str], Writer]:
    partials = partials_of(rule) if isinstance(rule, WindowRule) else None
    if partials is not None:
        return partial(_open_partials, place, partials)
    return partial(_open_spool, place, keeps=isinstance(rule, StreamJoinRule))


def _open_partials(place: StatePlace, partials: Partials, attempt: str) -> PartialsWriter:
    return PartialsWriter(StateWriter(place, attempt), partials)


def _open_spool(place: StatePlace, attempt: str, *, keeps: bool) -> StateWriter:
    return StateWriter(place, attempt, spools=True, keeps=keeps)
