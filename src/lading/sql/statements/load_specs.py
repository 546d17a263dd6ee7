"""From a statement to the load that it asks for, and from a load's expressions to those of Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lading.errors import LadingError, NotSupportedError
from lading.model.load import (
    ColumnSpec,
    FileIntake,
    LoadBudget,
    LoadLimits,
    LoadSpec,
    MappingSpec,
    RecordOptions,
    SessionOptions,
    SourceSpec,
)
from lading.model.names import database_key
from lading.sql.expressions.aggregates import check_window, split_windows
from lading.sql.expressions.mapping import SparkExpression, translate_expression
from lading.sql.properties.jobs import StreamingJobProperties, read_job_properties
from lading.sql.properties.routine import read_routine_properties
from lading.sql.statements.definitions import MappedColumn
from lading.sql.statements.jobs import CreateJob, CreateRoutineLoad
from lading.sql.statements.joins import check_join, join_spec
from lading.sql.statements.parts import LoadClauses, SelectItem, SourceFunction
from lading.sql.statements.stream_joins import stream_join_spec
from lading.sql.syntax.masking import drop_secrets
from lading.sql.syntax.parse import parse_statement

AnyLoad = CreateJob | CreateRoutineLoad


def load_spec(statement: AnyLoad) -> LoadSpec:
    """The load of a statement, without its secrets.

    The properties of the source are not looked at: those of a text that is kept lack the secrets. `define_…` checks
    them all, before a job is made or changed.
    """
    return _job_load(statement) if isinstance(statement, CreateJob) else _stream_load(statement)


def load_with_secrets(statement: AnyLoad) -> LoadSpec:
    """The same with what the statement has of secrets, to be opened and never to be kept."""
    function = statement.insert.source if isinstance(statement, CreateJob) else statement.source
    return replace(load_spec(statement), source=source_spec(function))


def source_spec(function: SourceFunction) -> SourceSpec:
    """A source as it is written, with its secrets."""
    return SourceSpec(kind=function.name, properties=function.properties)


def spec_of_text(text: str) -> LoadSpec | None:
    """The load of a text that was kept; None when it makes no load, or none that this version can read."""
    try:
        return read_load(text)
    except LadingError:
        return None


def read_load(text: str) -> LoadSpec:
    """The load of a text that was kept. Raises what is wrong with it."""
    statement = parse_statement(text)
    if not isinstance(statement, CreateJob | CreateRoutineLoad):
        msg = "The definition of the job is not CREATE JOB or CREATE ROUTINE LOAD"
        raise NotSupportedError(msg, todo="Drop the job and create it again.")
    return load_spec(statement)


def _job_load(statement: CreateJob) -> LoadSpec:
    insert, properties = statement.insert, read_job_properties(statement.properties)
    session = properties.session
    window, columns = split_windows(insert) if insert.group_by else (None, tuple(map(_selected, insert.items)))
    if window is not None:
        check_window(window, properties.watermark, properties.dedup)
    check_join(insert, properties.dedup)
    return LoadSpec(
        name=statement.name,
        target=str(insert.table),
        source=_source(insert.source),
        mapping=MappingSpec(
            target_columns=insert.columns,
            columns=columns,
            where=insert.where.text if insert.where else None,
            is_select=True,
            source_alias=insert.source_alias,
            by_name=insert.by_name,
        ),
        limits=LoadLimits(
            interval_s=properties.max_interval_s,
            size_bytes=properties.max_batch_size or properties.max_batch_bytes,
            files=properties.max_batch_files,
            rows=properties.max_batch_rows,
            tasks=properties.desired_concurrent_number,
        ),
        budget=LoadBudget(max_ratio=session.insert_max_filter_ratio, is_strict=session.enable_insert_strict),
        session=SessionOptions(
            strict_cast=session.enable_strict_cast,
            strict_values=session.enable_insert_strict or session.enable_strict_cast,
            # As in Doris, which gives an INSERT the longer of the two.
            timeout_s=max(session.insert_timeout_s, session.query_timeout_s),
            time_zone=session.time_zone,
        ),
        intake=intake_of(properties),
        watermark=properties.watermark,
        dedup=properties.dedup,
        listening=properties.listening,
        window=window,
        join=None if insert.join is None else join_spec(insert.join),
        stream_join=stream_join_spec(insert, properties.watermark, properties.dedup),
        on_poison_record=properties.on_poison_record,
        evolution=properties.evolution,
        errors_table=properties.errors_table,
    )


def intake_of(properties: StreamingJobProperties) -> FileIntake:
    """Which files a job loads, by its PROPERTIES."""
    return FileIntake(
        offset=properties.offset,
        ingestion_mode=properties.ingestion_mode,
        late_files=properties.late_files,
        late_window=properties.late_window,
        also_load=properties.also_load,
        settle_s=properties.settle_s,
        on_error=properties.on_file_error,
    )


def _target(statement: CreateRoutineLoad) -> str:
    name, place = statement.name, statement.table_in
    return f"{database_key(name.catalog, str(name.db))}.{statement.table}" if place is None else str(place)


def _stream_load(statement: CreateRoutineLoad) -> LoadSpec:
    if statement.table is None:
        msg = "A routine load for many tables is not supported"
        raise NotSupportedError(msg, todo="Write ON table.")
    clauses = statement.clauses
    properties = read_routine_properties(statement.properties, column_separator=clauses.column_separator)
    return LoadSpec(
        name=statement.name.name,
        target=_target(statement),
        source=_source(statement.source),
        mapping=MappingSpec(
            columns=_columns(clauses),
            preceding_filter=clauses.preceding_filter.text if clauses.preceding_filter else None,
            where=clauses.where.text if clauses.where else None,
        ),
        limits=LoadLimits(
            interval_s=properties.max_batch_interval_s,
            size_bytes=properties.max_batch_bytes,
            rows=properties.max_batch_rows,
            tasks=properties.desired_concurrent_number,
        ),
        budget=LoadBudget(max_ratio=properties.max_filter_ratio, max_errors=properties.max_error_number),
        session=SessionOptions(strict_values=properties.strict_mode, time_zone=properties.timezone),
        records=RecordOptions(
            format=properties.format,
            csv=properties.csv,
            json=properties.json,
            exec_mem_limit_bytes=properties.exec_mem_limit_bytes,
            send_batch_parallelism=properties.send_batch_parallelism,
        ),
        watermark=properties.watermark,
        dedup=properties.dedup,
        listening=properties.listening,
        on_poison_record=properties.on_poison_record,
        evolution=properties.evolution,
        errors_table=properties.errors_table,
    )


def _source(function: SourceFunction) -> SourceSpec:
    return SourceSpec(kind=function.name, properties=drop_secrets(function.properties))


def _selected(item: SelectItem) -> ColumnSpec:
    if item.is_star:
        return ColumnSpec(is_star=True)
    return ColumnSpec(name=item.alias, expression=item.expression.text)


def _columns(clauses: LoadClauses) -> tuple[ColumnSpec, ...] | None:
    if clauses.columns is None:
        return None
    return tuple(
        ColumnSpec(name=item.name, expression=item.expression.text if item.expression else None)
        for item in clauses.columns
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedMapping:
    """The expressions of a load in the words of Spark, before the types of their columns are known."""

    columns: tuple[MappedColumn, ...] | None
    preceding_filter: SparkExpression | None
    where: SparkExpression | None
    on: SparkExpression | None = None
    """The condition of a join."""


def translate_mapping(spec: LoadSpec) -> TranslatedMapping:
    """The expressions of a load, each for itself. Types are added where the table and the source are known."""
    mapping, strict = spec.mapping, spec.session.strict_cast

    sides = sides_of(spec)

    def translated(text: str | None) -> SparkExpression | None:
        if text is None:
            return None
        return translate_expression(text, strict_cast=strict, source_alias=mapping.source_alias, sides=sides)

    columns = mapping.columns
    return TranslatedMapping(
        columns=None
        if columns is None
        else tuple(
            MappedColumn(name=column.name, expression=translated(column.expression), is_star=column.is_star)
            for column in columns
        ),
        preceding_filter=translated(mapping.preceding_filter),
        where=translated(mapping.where),
        on=translated(joined.on) if (joined := spec.join or spec.stream_join) is not None else None,
    )


def sides_of(spec: LoadSpec) -> tuple[str, ...]:
    """What a load that joins calls its source, and its table or second stream; nothing for others."""
    join = spec.join or spec.stream_join
    return () if join is None else (spec.mapping.source_alias or "", join.alias)
