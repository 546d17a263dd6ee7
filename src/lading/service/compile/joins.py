"""From JOIN to what is read of rows, of the table, and of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from lading.commit.protocols import Joins
from lading.errors import ConfigError, SqlError
from lading.model.joined import JoinedTable
from lading.model.load import ColumnSpec, JoinSpec, LoadSpec, WatermarkSpec
from lading.model.rows import FILE
from lading.model.table import Column
from lading.pipeline.mapping import BUCKET, LINE, RowMapping, TargetColumn, quoted, reserved_names
from lading.pipeline.remote import RemoteFiles
from lading.pipeline.state.files import ROW, TIME
from lading.pipeline.state.rules import JoinRule
from lading.pipeline.tasks import Quarantine
from lading.service.compile.mapping import map_rows, used_names
from lading.service.compile.source_types import source_type
from lading.sql.expressions.sides import column_of_side, side_column
from lading.sql.expressions.typed import Scope, ScopeColumn, type_expression
from lading.sql.expressions.value_types import TEXT, type_of_spark
from lading.sql.statements.load_specs import translate_mapping
from lading.tables.types import arrow_type, is_nested, spark_type

_EXACT = type_of_spark("decimal(38,18)")
"""What a text is read as that is compared with a number: keys of many digits are not the same as doubles."""


class JoinSource(Joins, Protocol):
    """A table to join with."""

    def schema(self) -> pa.Schema:
        """Its columns now. Raises when it is gone, or when the owner of the job may not read it."""
        ...

    def open(self, joined: JoinedTable, columns: pa.Schema) -> RemoteFiles:
        """The files of a snapshot, to be read with these columns. Raises when it cannot be."""
        ...


def joined_source_load(load: LoadSpec, join: JoinSpec) -> LoadSpec:
    """What a load that joins reads of its source: the columns that it uses anywhere, as they are."""
    columns = tuple(ColumnSpec(expression=quoted(name)) for name in _source_columns(load, join))
    mapping = replace(load.mapping, columns=columns, target_columns=(), where=None, source_alias=None)
    return replace(load, mapping=mapping, watermark=_own_watermark(load), join=None)


def map_joined_rows(load: LoadSpec, join: JoinSpec, source: pa.Schema, knows: str) -> RowMapping:
    """What goes to the spool of a row: columns of the source as they are, called by their places."""
    names, side = _source_columns(load, join), load.mapping.source_alias or ""
    if reserved := reserved_names(source.names):
        msg = f"The source has a column {', '.join(map(repr, reserved))}, a name that Lading itself uses"
        raise ConfigError(msg, left="Nothing was changed.", todo="Rename it in the source.")
    if missing := [name for name in names if name not in source.names]:
        msg = f"Unknown column {', '.join(repr(side_column(side, name)) for name in missing)} in the source"
        raise SqlError(msg, todo=knows)
    columns = [
        TargetColumn(name=f"__j{n}", type=kept_type(side, source.field(name)), expression=quoted(name))
        for n, name in enumerate(names)
    ]
    return RowMapping(columns=tuple(columns), keys=(), strict=False)


def join_rule(
    load: LoadSpec,
    join: JoinSpec,
    rows: RowMapping,
    target: pa.Schema,
    lengths: Mapping[str, str],
    table: JoinSource,
    open_quarantine: Callable[[str], Quarantine],
) -> JoinRule:
    """How rows are joined and what is written of them, checked against all three tables."""
    if taken := reserved_names(target.names):
        msg = f"The table has a column {', '.join(taken)}, a name that Lading itself uses for jobs that join"
        raise SqlError(msg, todo="Rename it in the table.")
    own = [side_column(load.mapping.source_alias or "", name) for name in _source_columns(load, join)]
    kinds = [arrow_type(Column(name="", type=column.type)) for column in rows.columns]
    spooled = [pa.field(name, kind) for name, kind in zip(own, kinds, strict=True)]
    there = table.schema()
    used = [name for name in _all_names(load) if column_of_side(name, join.alias) is not None]
    wanted = pa.schema([_field_of(there, name, join) for name in used])
    others = [pa.field(name, wanted.field(n).type) for n, name in enumerate(used)]
    both = pa.schema([*spooled, *others])
    hidden = [pa.field(TIME, pa.int64()), pa.field(BUCKET, pa.int32()), pa.field(ROW, pa.int64())]
    told = [*(field.type for field in spooled), pa.string(), pa.int64()]
    return JoinRule(
        spool_schema=pa.schema([*(pa.field(f"c{n}", kind) for n, kind in enumerate(told)), *hidden]),
        source=tuple(own),
        table=wanted,
        names=tuple(used),
        on=_condition(load, both),
        is_left=join.is_left,
        mapping=map_rows(replace(load, watermark=None), target, lengths, both),
        open=table.open,
        open_quarantine=open_quarantine,
    )


def join_columns(mapping: RowMapping) -> tuple[str, ...]:
    """What a reading task hands on of a row: its columns, and where it is from."""
    return (*(column.name for column in mapping.columns), FILE, LINE)


def _condition(load: LoadSpec, both: pa.Schema) -> str:
    on = translate_mapping(load).on
    if on is None:
        msg = "A join has no condition"
        raise SqlError(msg, todo="Write ON s.k = d.k.")
    kinds = {field.name.lower(): source_type(field.type) for field in both}
    scope = Scope(
        columns={name: ScopeColumn(type=kind) for name, kind in kinds.items()},
        exact_columns={name: _EXACT for name, kind in kinds.items() if kind == TEXT},
        refuses_longer=True,
    )
    return type_expression(on, scope, is_condition=True).text


def _field_of(there: pa.Schema, name: str, join: JoinSpec) -> pa.Field:
    column = column_of_side(name, join.alias)
    if column not in there.names:
        msg = f"The job joins with {join.table}, which has no column {column}"
        todo = (
            f"It has: {', '.join(there.names)}. ALTER the job, or give the table its column back; then RESUME the job."
        )
        raise SqlError(msg, todo=todo)
    return there.field(column)


def kept_type(side: str, field: pa.Field) -> str:
    """The type of a column that is handed on. Raises SqlError for one that cannot be."""
    name = side_column(side, field.name) if side else field.name
    msg = f"Column {name} has the type {field.type}, which a join cannot hand on"
    refused = SqlError(msg, todo="Leave it out, or write it as a text or a number in the source.")
    if is_nested(field.type):
        raise refused
    try:
        return spark_type(field.type)
    except ConfigError as error:
        raise refused from error


def _source_columns(load: LoadSpec, join: JoinSpec) -> list[str]:
    found = [name for name in _all_names(load) if column_of_side(name, join.alias) is None]
    columns = [column_of_side(name, load.mapping.source_alias or "") or "" for name in found]
    watermark = _own_watermark(load)
    return list(dict.fromkeys([*columns, *([watermark.column] if watermark is not None else [])]))


def _all_names(load: LoadSpec) -> list[str]:
    translated = translate_mapping(load)
    on = translated.on.columns if translated.on is not None else ()
    return list(dict.fromkeys([*used_names(translated), *on]))


def _own_watermark(load: LoadSpec) -> WatermarkSpec | None:
    """The event time is one of the source: the table has none of its own."""
    spec = load.watermark
    if spec is None:
        return None
    column = column_of_side(spec.column, load.mapping.source_alias or "")
    return replace(spec, column=spec.column if column is None else column)
