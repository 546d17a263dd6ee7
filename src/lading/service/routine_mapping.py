"""From COLUMNS, PRECEDING FILTER and WHERE to what is read of a record and what is done to a row.

    record ─▶ source columns ─▶ PRECEDING FILTER ─▶ COLUMNS and casts ─▶ WHERE ─▶ table columns

Both filters become one condition over the source columns: whatever they name beside those is put into them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lading.errors import PropertyError
from lading.pipeline.mapping import RowMapping, TargetColumn, quoted
from lading.service.spark_text import substitute
from lading.sql.definitions import RoutineLoadDefinition
from lading.sql.expressions import SparkExpression
from lading.sql.table_statements import LENGTH_PROPERTY
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


def map_rows(
    definition: RoutineLoadDefinition, target: pa.Schema, lengths: Mapping[str, str], metadata: Collection[str]
) -> Mapped:
    """Check the clauses against the table and put them together. `metadata` is what the stream can tell."""
    return _Mapper(definition, target, lengths, metadata).run()


class _Mapper:
    def __init__(
        self,
        definition: RoutineLoadDefinition,
        target: pa.Schema,
        lengths: Mapping[str, str],
        metadata: Collection[str],
    ) -> None:
        self._definition = definition
        self._target = target
        self._lengths = lengths
        self._known_metadata = {name.lower(): name for name in metadata}
        self._metadata: dict[str, None] = {}
        self._fields = {field.name.lower(): field for field in target}
        self._source_columns = self._read_source_columns()
        self._sources = {name.lower(): name for name in self._source_columns}
        self._derived = self._read_derived()
        self._zone = definition.properties.timezone or "UTC"

    def run(self) -> Mapped:
        columns = tuple(self._column(field) for field in self._target)
        filters = [self._preceding_filter(), self._where()]
        found = [f"coalesce(({text}), false)" for text in filters if text is not None]
        where = " AND ".join(found) or None
        strict = self._definition.properties.strict_mode
        return Mapped(
            source_columns=self._source_columns,
            metadata=tuple(self._metadata),
            mapping=RowMapping(columns=columns, where=where, strict=strict),
        )

    def _read_source_columns(self) -> tuple[str, ...]:
        given = self._definition.columns
        paths = len(self._definition.properties.json.jsonpaths)
        if given is None:
            names = self._target.names
            names = names[:paths] if 0 < paths < len(names) else names
        else:
            names = [column.name or "" for column in given if column.expression is None]
        repeated = sorted({name for name in names if [other.lower() for other in names].count(name.lower()) > 1})
        if repeated:
            msg = f"COLUMNS names {', '.join(repeated)} twice"
            raise PropertyError(msg, todo="Give each field of a record a name of its own.")
        if paths and self._definition.properties.format == "json" and paths != len(names):
            msg = f"Invalid json path: {paths} jsonpaths for {len(names)} columns of the source"
            raise PropertyError(msg, property="jsonpaths", todo="Give one path for each column that has no expression.")
        return tuple(names)

    def _read_derived(self) -> dict[str, SparkExpression]:
        found: dict[str, SparkExpression] = {}
        for column in self._definition.columns or ():
            if column.expression is None:
                continue
            name = (column.name or "").lower()
            if name in found:
                msg = f"COLUMNS derives {column.name} twice"
                raise PropertyError(msg, todo="Keep one of the two.")
            found[name] = column.expression
        return found

    def _column(self, field: pa.Field) -> TargetColumn:
        name, kind = field.name.lower(), spark_type(field.type)
        length = self._lengths.get(LENGTH_PROPERTY + field.name)
        expression: str | None = None
        if name in self._derived:
            expression = self._resolved(self._derived[name], (name,))
        elif name in self._sources:
            expression = zoned(quoted(self._sources[name]), kind, self._zone)
        elif not field.nullable:
            msg = f"Column {field.name} is NOT NULL, has no default value and is not in COLUMNS"
            raise PropertyError(msg, todo=f"Add it to COLUMNS, as in COLUMNS (…, {field.name} = 0).")
        return TargetColumn(
            name=field.name,
            type=kind,
            nullable=field.nullable,
            expression=expression,
            max_length=int(length) if length else None,
            checks_cast=False if name in self._derived else None,
        )

    def _resolved(self, expression: SparkExpression, inside: tuple[str, ...]) -> str:
        """An expression over source columns and metadata. A derived column that it names is written out."""
        values = {}
        for column in expression.columns:
            name = column.lower()
            if name in self._derived and name not in self._sources:
                if name in inside:
                    msg = f"COLUMNS derives {' from '.join((*inside, name))}"
                    raise PropertyError(msg, todo="A column cannot be made from itself.")
                values[name] = self._resolved(self._derived[name], (*inside, name))
            else:
                self._check_known(column)
        return substitute(expression.text, values)

    def _preceding_filter(self) -> str | None:
        expression = self._definition.preceding_filter
        if expression is None:
            return None
        for column in expression.columns:
            self._check_known(column)
        return expression.text

    def _where(self) -> str | None:
        """A name of the table means the mapped and cast value; any other one the column of the source."""
        expression = self._definition.where
        if expression is None:
            return None
        values = {}
        for column in expression.columns:
            name = column.lower()
            if name in self._fields:
                target = self._column(self._fields[name])
                values[name] = f"TRY_CAST({target.expression or 'NULL'} AS {target.type.upper()})"
            elif name in self._derived and name not in self._sources:
                values[name] = self._resolved(self._derived[name], (name,))
            else:
                self._check_known(column)
        return _inlined(expression.text, values)

    def _check_known(self, column: str) -> None:
        name = column.lower()
        if name in self._sources:
            return
        if name in self._known_metadata:
            self._metadata[self._known_metadata[name]] = None
            return
        msg = f"Unknown column '{column}' in the source"
        told = ", ".join(self._source_columns)
        raise PropertyError(msg, todo=f"A record has: {told}; the stream tells: {', '.join(self._known_metadata)}.")


def _inlined(text: str, values: Mapping[str, str]) -> str:
    """Values go in by a stand-in, so that only the filter itself has to be understood and they stay as they are.

    A filter may hold the name of a stand-in, in quotes for instance: a value put there would end the quotes.
    """
    prefix = "__lading_"
    while prefix in text:
        prefix += "_"
    stand_ins = {f"`{prefix}{number}`": name for number, name in enumerate(values)}
    marked = substitute(text, {name: stand_in for stand_in, name in stand_ins.items()})
    # In one pass: a value may hold the name of the next stand-in.
    return re.sub("|".join(stand_ins), lambda found: values[stand_ins[found[0]]], marked) if stand_ins else marked


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
