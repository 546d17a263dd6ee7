"""From COLUMNS, PRECEDING FILTER and WHERE to what is read of a record and what is done to a row.

    record ─▶ source columns ─▶ PRECEDING FILTER ─▶ COLUMNS and casts ─▶ WHERE ─▶ table columns

Both filters become one condition over the source columns: whatever they name beside those is put into them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lading.errors import SqlError
from lading.model.load import LoadSpec
from lading.pipeline.mapping import RowMapping, TargetColumn, cast_text, misfit, quoted
from lading.service.compile.source_types import source_type
from lading.sql.expressions.mapping import SparkExpression
from lading.sql.expressions.typed import Scope, ScopeColumn, TypedExpression, type_expression
from lading.sql.expressions.value_types import TEXT, ValueType, exact_for
from lading.sql.statements.load_specs import translate_mapping
from lading.sql.statements.tables import LENGTH_PROPERTY
from lading.tables.types import spark_type

_ZONE = "[0-9]:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)? ?(Z|[+-][0-9]{1,2}(:?[0-9]{2})?|[A-Za-z_]+(/[A-Za-z_]+)*)$"
"""What ends a time that says its own zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """What a job reads and does."""

    source_columns: tuple[str, ...]
    """Read from the record: by place for CSV, by name for JSON, or by the jsonpath of the same place."""
    metadata: tuple[str, ...]
    """What the job wants to know of a record beside its content."""
    mapping: RowMapping


def map_rows(load: LoadSpec, target: pa.Schema, lengths: Mapping[str, str], metadata: pa.Schema) -> Mapped:
    """Check the clauses against the table and put them together. `metadata` is what the stream can tell."""
    return _Mapper(load, target, lengths, metadata).run()


class _Mapper:
    def __init__(
        self,
        load: LoadSpec,
        target: pa.Schema,
        lengths: Mapping[str, str],
        metadata: pa.Schema,
    ) -> None:
        self._load = load
        self._translated = translate_mapping(load)
        self._target = target
        self._lengths = lengths
        self._known_metadata = {field.name.lower(): field for field in metadata}
        self._metadata: dict[str, None] = {}
        self._fields = {field.name.lower(): field for field in target}
        self._source_columns = self._read_source_columns()
        self._sources = {name.lower(): name for name in self._source_columns}
        self._derived = self._read_derived()
        self._zone = load.session.time_zone or "UTC"

    def run(self) -> Mapped:
        columns = tuple(self._column(field) for field in self._target)
        filters = [found for found in (self._preceding_filter(), self._where()) if found is not None]
        return Mapped(
            source_columns=self._source_columns,
            metadata=tuple(self._metadata),
            mapping=RowMapping(
                columns=columns,
                where=" AND ".join(f"({found.text})" for found in filters) or None,
                where_unread=_undecided(filters),
                where_tells_by_null=all(found.tells_by_null for found in filters),
                strict=self._load.session.strict_values,
            ),
        )

    def _read_source_columns(self) -> tuple[str, ...]:
        given = self._translated.columns
        paths = len(self._load.records.json.jsonpaths)
        if given is None:
            names = self._target.names
            names = names[:paths] if 0 < paths < len(names) else names
        else:
            names = [column.name or "" for column in given if column.expression is None]
        repeated = sorted({name for name in names if [other.lower() for other in names].count(name.lower()) > 1})
        if repeated:
            msg = f"COLUMNS names {', '.join(repeated)} twice"
            raise SqlError(msg, todo="Give each field of a record a name of its own.")
        if paths and self._load.records.format == "json" and paths != len(names):
            msg = f"Invalid json path: {paths} jsonpaths for {len(names)} columns of the source"
            raise SqlError(msg, property="jsonpaths", todo="Give one path for each column that has no expression.")
        return tuple(names)

    def _read_derived(self) -> dict[str, SparkExpression]:
        found: dict[str, SparkExpression] = {}
        for column in self._translated.columns or ():
            if column.expression is None:
                continue
            name = (column.name or "").lower()
            if name in found:
                msg = f"COLUMNS derives {column.name} twice"
                raise SqlError(msg, todo="Keep one of the two.")
            found[name] = column.expression
        return found

    def _column(self, field: pa.Field) -> TargetColumn:
        name, kind = field.name.lower(), spark_type(field.type)
        length = self._lengths.get(LENGTH_PROPERTY + field.name)
        column = TargetColumn(
            name=field.name, type=kind, nullable=field.nullable, max_length=int(length) if length else None
        )
        if name in self._derived:
            made = self._typed(self._derived[name], (name,), exact_for(source_type(field.type)))
            found = replace(column, expression=made.text, is_text=made.type == TEXT, unread=made.unread)
            return replace(found, tells_by_null=made.tells_by_null)
        if name in self._sources:
            return replace(column, expression=zoned(quoted(self._sources[name]), kind, self._zone), is_text=True)
        if not field.nullable:
            msg = f"Column {field.name} is NOT NULL, has no default value and is not in COLUMNS"
            raise SqlError(msg, todo=f"Add it to COLUMNS, as in COLUMNS (…, {field.name} = 0).")
        return column

    def _typed(self, expression: SparkExpression, inside: tuple[str, ...], exact: ValueType | None) -> TypedExpression:
        """An expression over source columns and metadata. A derived column that it names is written out."""
        columns = {name.lower(): self._named(name, inside, exact) for name in expression.columns}
        return type_expression(expression, Scope(columns=columns, exact=exact))

    def _named(self, column: str, inside: tuple[str, ...], exact: ValueType | None) -> ScopeColumn:
        name = column.lower()
        if name not in self._derived or name in self._sources:
            return self._known(column)
        if name in inside:
            msg = f"COLUMNS derives {' from '.join((*inside, name))}"
            raise SqlError(msg, todo="A column cannot be made from itself.")
        made = self._typed(self._derived[name], (*inside, name), exact)
        return ScopeColumn(type=made.type, text=made.text, unread=made.unread, tells_by_null=made.tells_by_null)

    def _preceding_filter(self) -> TypedExpression | None:
        expression = self._translated.preceding_filter
        if expression is None:
            return None
        columns = {name.lower(): self._known(name) for name in expression.columns}
        found = {name: exact_for(source_type(self._fields[name].type)) for name in self._plain_columns()}
        exact = {name: kind for name, kind in found.items() if kind is not None}
        return type_expression(expression, Scope(columns=columns, exact_columns=exact), is_condition=True)

    def _plain_columns(self) -> list[str]:
        """Columns of the source that go to the table as they are."""
        return [name for name in self._sources if name in self._fields and name not in self._derived]

    def _where(self) -> TypedExpression | None:
        """A name of the table means the mapped and cast value; any other one the column of the source."""
        expression = self._translated.where
        if expression is None:
            return None
        columns = {
            name.lower(): self._cast_column(self._fields[name.lower()])
            if name.lower() in self._fields
            else self._named(name, (), None)
            for name in expression.columns
        }
        return type_expression(expression, Scope(columns=columns), is_condition=True)

    def _cast_column(self, field: pa.Field) -> ScopeColumn:
        """A column of the table: its value after the cast, and what cannot be cast."""
        column = self._column(field)
        value = f"({column.expression or 'NULL'})"
        cast = cast_text(column, value)
        parts = [part for part in (column.unread, f"CASE {misfit(column, value, cast)} END") if part]
        unread = f"coalesce({', '.join(parts)})" if column.expression else None
        tells = column.tells_by_null or column.unread is None
        return ScopeColumn(type=source_type(field.type), text=cast, unread=unread, tells_by_null=tells)

    def _known(self, column: str) -> ScopeColumn:
        """A column of the source, or one of its metadata."""
        name = column.lower()
        if name in self._sources:
            return ScopeColumn(type=TEXT)
        if name in self._known_metadata:
            field = self._known_metadata[name]
            self._metadata[field.name] = None
            return ScopeColumn(type=source_type(field.type))
        msg = f"Unknown column '{column}' in the source"
        known = ", ".join(field.name for field in self._known_metadata.values())
        raise SqlError(msg, todo=f"A record has: {', '.join(self._source_columns)}; the stream tells: {known}.")


def _undecided(filters: Sequence[TypedExpression]) -> str | None:
    """Why a row can neither be taken nor left out. A filter that is false decides, whatever another one cannot read."""
    reasons = []
    for number, found in enumerate(filters):
        if found.unread is None:
            continue
        others = [_is_false(other) for place, other in enumerate(filters) if place != number]
        settled = f"WHEN {' OR '.join(others)} THEN NULL " if others else ""
        reasons.append(f"CASE {settled}ELSE {found.unread} END" if others else found.unread)
    return f"coalesce({', '.join(reasons)})" if len(reasons) > 1 else reasons[0] if reasons else None


def _is_false(filter: TypedExpression) -> str:
    readable = f" AND ({filter.unread}) IS NULL" if filter.unread else ""
    return f"(NOT coalesce(({filter.text}), true){readable})"


def zoned(column: str, kind: str, zone: str) -> str:
    """A text that is a time, in the time zone of the job; other columns as they are.

    Spark reads times without a zone as UTC. What cannot be read stays a text, so that strict mode sees it.
    """
    if kind == "timestamp" and zone != "UTC":
        made = f"to_utc_timestamp(try_cast({column} AS timestamp), '{zone}')"
        made = f"CASE WHEN {column} RLIKE '{_ZONE}' THEN try_cast({column} AS timestamp) ELSE {made} END"
    elif kind == "timestamp_ntz" and zone != "UTC":
        made = f"from_utc_timestamp(try_cast({column} AS timestamp), '{zone}')"
        made = f"CASE WHEN {column} RLIKE '{_ZONE}' THEN {made} ELSE try_cast({column} AS timestamp) END"
    elif kind == "timestamp_ntz":
        made = f"try_cast({column} AS timestamp)"
    else:
        return column
    return f"coalesce(cast({made} AS string), {column})"
