"""From the clauses of a load to what is read of a row and what is done to it.

    row ─▶ source columns ─▶ PRECEDING FILTER ─▶ COLUMNS and casts ─▶ WHERE ─▶ table columns
    row ─▶ source columns ─▶ WHERE ─▶ SELECT and casts ─▶ table columns

COLUMNS fills the columns of the table by name, SELECT by place or BY NAME. Whatever filters name beside the source
columns is put into them: they become one condition over those.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lading.errors import ConfigError, SqlError
from lading.model.load import LoadSpec
from lading.model.rows import REST
from lading.pipeline.mapping import RowMapping, TargetColumn, cast_text, misfit, quoted, reserved_names
from lading.service.compile.filled import check_one, filled_by_name, filled_by_place, unknown_targets
from lading.service.compile.nested import with_nested
from lading.service.compile.source_types import source_type
from lading.sql.expressions.mapping import SparkExpression, column_expression
from lading.sql.expressions.typed import Scope, ScopeColumn, TypedExpression, type_expression
from lading.sql.expressions.value_types import TEXT, ValueType, exact_for
from lading.sql.statements.load_specs import TranslatedMapping, translate_mapping
from lading.sql.statements.tables import LENGTH_PROPERTY
from lading.suggest import did_you_mean
from lading.tables.types import is_nested, spark_type

_STORED = frozenset(("TEXT", "BOOLEAN", "INTEGER", "DECIMAL", "DOUBLE", "DATE", "DATETIME", "MOMENT"))
"""Kinds of values that state can keep."""
_ZONE = "[0-9]:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)? ?(Z|[+-][0-9]{1,2}(:?[0-9]{2})?|[A-Za-z_]+(/[A-Za-z_]+)*)$"
"""What ends a time that says its own zone."""


def asked_columns(load: LoadSpec, target: pa.Schema, metadata: pa.Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a load asks of a row, and which of the metadata that the source can tell."""
    translated = translate_mapping(load)
    used = used_names(translated)
    if load.mapping.is_select:
        filled = load.mapping.target_columns or own_columns(load, target)
        stars = filled if any(column.is_star for column in translated.columns or ()) else ()
        columns = tuple(dict.fromkeys([*stars, *used]))
    else:
        columns = _fields(load, translated, target)
    known = {field.name.lower(): field.name for field in metadata}
    own = set() if load.mapping.is_select else {name.lower() for name in columns}
    told = dict.fromkeys(known[name.lower()] for name in used if name.lower() in known and name.lower() not in own)
    return tuple(name for name in columns if name not in told), tuple(told)


def own_columns(load: LoadSpec, target: pa.Schema) -> list[str]:
    """The columns of a table that fields of the source may fill."""
    return [name for name in target.names if name != load.evolution.rescued_column]


def used_names(translated: TranslatedMapping) -> list[str]:
    """The columns that expressions of a load read."""
    expressions = [column.expression for column in translated.columns or ()]
    expressions += [translated.preceding_filter, translated.where]
    return [name for each in expressions if each is not None for name in each.columns]


def _fields(load: LoadSpec, translated: TranslatedMapping, target: pa.Schema) -> tuple[str, ...]:
    """What COLUMNS reads of a record: by place for CSV, by name for JSON, or by the jsonpath of the same place."""
    given = translated.columns
    paths = len(load.records.json.jsonpaths)
    if given is None:
        names = own_columns(load, target)
        names = names[:paths] if 0 < paths < len(names) else names
    else:
        names = [column.name or "" for column in given if column.expression is None]
    repeated = sorted({name for name in names if [other.lower() for other in names].count(name.lower()) > 1})
    if repeated:
        msg = f"COLUMNS names {', '.join(repeated)} twice"
        raise SqlError(msg, todo="Give each field of a record a name of its own.")
    if paths and load.records.format == "json" and paths != len(names):
        msg = f"Invalid json path: {paths} jsonpaths for {len(names)} columns of the source"
        raise SqlError(msg, property="jsonpaths", todo="Give one path for each column that has no expression.")
    return tuple(names)


def map_rows(
    load: LoadSpec,
    target: pa.Schema,
    lengths: Mapping[str, str],
    source: pa.Schema,
    knows: str = "",
    told: Collection[str] = (),
) -> RowMapping:
    """Check the clauses against the table and the source, and put them together. `knows` is for who asks in vain,
    `told` are columns of the source that `*` does not mean."""
    if reserved := reserved_names(name for name in source.names if name != REST):
        msg = f"The source has a column {', '.join(map(repr, reserved))}, a name that Lading itself uses"
        raise ConfigError(msg, left="Nothing was changed.", todo="Rename it in the source.")
    form = _SelectMapper if load.mapping.is_select else _ColumnsMapper
    return form(load, target, lengths, source, knows, told).run()


def map_values(load: LoadSpec, source: pa.Schema, kinds: Sequence[Callable[[str], str]], knows: str = "") -> RowMapping:
    """The expressions of a SELECT as columns c0, c1, … with types of their own, and its WHERE."""
    return _ValuesMapper(load, pa.schema([]), {}, source, knows).values(kinds)


class _Mapper:
    """What both forms have."""

    def __init__(
        self,
        load: LoadSpec,
        target: pa.Schema,
        lengths: Mapping[str, str],
        source: pa.Schema,
        knows: str,
        told: Collection[str] = (),
    ) -> None:
        self._load = load
        self._translated = translate_mapping(load)
        self._target = target
        self._lengths = lengths
        self._source = source
        self._stars = [name for name in source.names if name not in told]
        self._knows = knows

    def _bare(self, field: pa.Field) -> TargetColumn:
        """A column of the table that nothing fills."""
        length = self._lengths.get(LENGTH_PROPERTY + field.name)
        return TargetColumn(
            name=field.name,
            type="string" if is_nested(field.type) else spark_type(field.type),
            nullable=field.nullable,
            max_length=int(length) if length else None,
            nested=spark_type(field.type) if is_nested(field.type) else "",
        )

    def _row_mapping(self, columns: Sequence[TargetColumn], filters: Sequence[TypedExpression]) -> RowMapping:
        return RowMapping(
            columns=tuple(columns),
            where=self._joined(filters),
            where_unread=_undecided(filters),
            where_tells_by_null=bool(filters) and all(each.tells_by_null for each in filters),
            strict=self._load.session.strict_values,
            rescued=self._load.evolution.rescued_column,
        )

    def _joined(self, filters: Sequence[TypedExpression]) -> str | None:
        return " AND ".join(f"({each.text})" for each in filters) or None

    def _unknown(self, names: Sequence[str]) -> SqlError:
        msg = f"Unknown column {', '.join(repr(name) for name in names)} in the source"
        near = "".join(did_you_mean(name, self._source.names) for name in names)
        return SqlError(msg, todo=f"{near}{self._knows}")


class _SelectMapper(_Mapper):
    """SELECT: items fill the columns of the table by their place, or BY NAME."""

    def run(self) -> RowMapping:
        if missing := sorted(set(used_names(self._translated)) - set(self._source.names)):
            raise self._unknown(missing)
        filled, where = self._filled(), self._translated.where
        check_one(self._source.names, [*filled.values(), *([where] if where is not None else [])])
        scope = Scope(columns={field.name.lower(): ScopeColumn(type=source_type(field.type)) for field in self._source})
        filters = []
        if where is not None:
            exact = replace(scope, exact_columns=self._exact_columns(filled))
            filters.append(type_expression(where, exact, is_condition=True))
        return self._row_mapping(
            [self._column(field, filled.get(field.name), scope) for field in self._target], filters
        )

    def _joined(self, filters: Sequence[TypedExpression]) -> str | None:
        return filters[0].text if filters else None

    def _filled(self) -> dict[str, SparkExpression]:
        """By column of the table: what it is filled with."""
        if self._load.evolution.is_on:
            return self._filled_by_name()
        names = list(self._load.mapping.target_columns or self._target.names)
        if unknown := [name for name in names if name not in self._target.names]:
            raise unknown_targets(unknown, self._target.names)
        fill = filled_by_name if self._load.mapping.by_name else filled_by_place
        return fill(self._translated.columns or (), names, self._stars, self._knows)

    def _filled_by_name(self) -> dict[str, SparkExpression]:
        """A table that grows with its source: each column takes the field of its name."""
        found = {name: column_expression(name) for name in self._target.names if name in self._source.names}
        if rescued := self._load.evolution.rescued_column:
            found[rescued] = column_expression(REST)
        return found

    def _exact_columns(self, filled: Mapping[str, SparkExpression]) -> dict[str, ValueType]:
        """Columns of the source that go to a decimal column as they are: WHERE compares their texts as decimals."""
        kinds = {name: exact_for(source_type(self._target.field(name).type)) for name in filled}
        return {
            expression.columns[0].lower(): kind
            for name, expression in filled.items()
            if (kind := kinds[name]) is not None and expression.is_column
        }

    def _column(self, field: pa.Field, expression: SparkExpression | None, scope: Scope) -> TargetColumn:
        bare, zone = self._bare(field), self._load.session.time_zone
        if expression is None:
            return bare
        typed = type_expression(expression, replace(scope, exact=exact_for(source_type(field.type))))
        is_text = typed.type == TEXT
        is_zoned = expression.is_column and is_text and zone
        filled = replace(
            bare,
            expression=zoned(typed.text, bare.type, zone) if is_zoned else typed.text,
            is_text=is_text,
            unread=typed.unread,
            tells_by_null=typed.tells_by_null,
        )
        return with_nested(filled, field, typed.type, zone)


class _ValuesMapper(_SelectMapper):
    """Expressions over the source, each as a column of its own: what state needs of a row."""

    def values(self, kinds: Sequence[Callable[[str], str]]) -> RowMapping:
        """`kinds` says for each what a value of its type is read as."""
        if missing := sorted(set(used_names(self._translated)) - set(self._source.names)):
            raise self._unknown(missing)
        scope = Scope(columns={field.name.lower(): ScopeColumn(type=source_type(field.type)) for field in self._source})
        where = self._translated.where
        filters = [type_expression(where, scope, is_condition=True)] if where is not None else []
        given = [column.expression for column in self._translated.columns or () if column.expression is not None]
        pairs = enumerate(zip(given, kinds, strict=True))
        return self._row_mapping([self._value(n, made, kind, scope) for n, (made, kind) in pairs], filters)

    def _value(
        self, number: int, expression: SparkExpression, kind: Callable[[str], str], scope: Scope
    ) -> TargetColumn:
        typed = type_expression(expression, scope)
        if typed.type.kind.name not in _STORED:
            msg = f"{expression.text} has a type that cannot be kept"
            raise SqlError(msg, todo="CAST it to a number, a text or a time.")
        return TargetColumn(
            name=f"c{number}",
            type=kind(typed.type.spark_name),
            expression=typed.text,
            is_text=typed.type == TEXT,
            unread=typed.unread,
            tells_by_null=typed.tells_by_null,
        )


class _ColumnsMapper(_Mapper):
    """COLUMNS: fields of a record and derived columns, which fill the columns of the table by their name."""

    def run(self) -> RowMapping:
        self._fields = {field.name.lower(): field for field in self._target}
        self._sources = {name.lower(): name for name in _fields(self._load, self._translated, self._target)}
        self._known_types = {field.name.lower(): source_type(field.type) for field in self._source}
        self._derived = self._read_derived()
        self._zone = self._load.session.time_zone or "UTC"
        filters = [each for each in (self._preceding_filter(), self._where()) if each is not None]
        return self._row_mapping([self._column(field) for field in self._target], filters)

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
        name, column = field.name.lower(), self._bare(field)
        if field.name == self._load.evolution.rescued_column:
            return replace(column, expression=quoted(REST), is_text=True)
        if name in self._derived:
            typed = self._typed(self._derived[name], (name,), exact_for(source_type(field.type)))
            filled = replace(
                column,
                expression=typed.text,
                is_text=typed.type == TEXT,
                unread=typed.unread,
                tells_by_null=typed.tells_by_null,
            )
            return with_nested(filled, field, typed.type, self._zone)
        if name in self._sources:
            is_text = self._known_types[name] == TEXT
            text = quoted(self._sources[name])
            filled = replace(
                column, expression=zoned(text, column.type, self._zone) if is_text else text, is_text=is_text
            )
            return with_nested(filled, field, self._known_types[name], self._zone)
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
        kind = TEXT if column.nested else source_type(field.type)
        return ScopeColumn(type=kind, text=cast, unread=unread, tells_by_null=tells)

    def _known(self, column: str) -> ScopeColumn:
        """A column of the source, or one of its metadata."""
        kind = self._known_types.get(column.lower())
        if kind is None:
            raise self._unknown([column])
        return ScopeColumn(type=kind)


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
