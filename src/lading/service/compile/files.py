"""From a load of files to everything that runs it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lading.clock import Clock
from lading.errors import ConfigError, SqlError
from lading.jobs.record import JobRecord
from lading.model.batch import BatchPlan, Limits
from lading.model.bill import Bill
from lading.model.file_offset import render_offset
from lading.model.job import ErrorBudget, Job
from lading.model.load import LoadSpec
from lading.net.addresses import AddressRules
from lading.pipeline.mapping import RowMapping, TargetColumn, reserved_names
from lading.pipeline.quarantine import QuarantineFile
from lading.pipeline.stager import Stage
from lading.pipeline.tasks import TaskTools
from lading.service.compile.column_defaults import with_defaults
from lading.service.compile.compiled import Compiled, with_identity
from lading.service.compile.file_surveys import told_survey
from lading.service.compile.mapping import zoned
from lading.service.compile.partition_nulls import with_partition_nulls
from lading.service.compile.source_types import source_type
from lading.sources.files.kind import files_spec_of, plan_file_moves
from lading.sources.files.packing import SplitSizing
from lading.sources.files.payload import parse_payload
from lading.sources.files.reader import output_schema, read_splits
from lading.sources.files.schema import infer_schema
from lading.sources.files.source import FilesSource
from lading.sources.files.spec import FilesSpec, Format
from lading.sources.hidden import without_hidden
from lading.sources.registry import kind_of
from lading.sql.expressions.mapping import SparkExpression, column_expression
from lading.sql.expressions.typed import Scope, ScopeColumn, type_expression
from lading.sql.expressions.value_types import TEXT, ValueType, exact_for
from lading.sql.properties.files import read_file_source
from lading.sql.statements.load_specs import TranslatedMapping, translate_mapping
from lading.sql.statements.parts import SourceFunction
from lading.sql.statements.tables import LENGTH_PROPERTY
from lading.store.records import TableEntry
from lading.tables.base import LakeTable
from lading.tables.registry import open_writer
from lading.tables.types import spark_type

MOST_FILES = 256
"""Of a batch, where a load does not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesContext:
    """What an installation says about all jobs that load files."""

    clock: Clock
    settle_s: float
    """For how long a file on a disk must not have been modified, where the job does not say it."""
    is_trial: bool = False
    """The job is only looked at: its columns may come from a file that is still written."""


def compile_files(
    record: JobRecord,
    load: LoadSpec,
    table: LakeTable,
    entry: TableEntry,
    quarantine: str,
    *,
    addresses: AddressRules,
    context: FilesContext,
) -> Compiled:
    """Check a load, with its secrets, against its table and its files, and put its parts together."""
    mapping, scale = translate_mapping(load), record.batch_scale
    spec = files_spec(load, mapping, table.schema(), addresses, context.settle_s)
    if context.is_trial:
        spec = replace(spec, settle_s=0.0)
    known = spec if spec.schema is not None else infer_schema(spec, clock=context.clock)
    limits = load.limits
    job = Job(
        job_id=record.job_id,
        name=record.name,
        start=offset_text(load.intake.offset),
        definition=record.definition,
        limits=Limits(
            files=max(1, int((limits.files or MOST_FILES) * scale)),
            size_bytes=max(1, int(limits.size_bytes * scale)),
        ),
        budget=ErrorBudget(strict=load.budget.is_strict, max_ratio=load.budget.max_ratio),
    )
    # Spark is not started for a job that has nothing to load, so nobody knows yet how many tasks it runs at one time.
    sizing = SplitSizing(parallel=max(2, os.cpu_count() or 2))
    source = FilesSource(known or spec, sizing=sizing, clock=context.clock)
    return Compiled(
        job=job,
        source=source,
        stage=None
        if known is None
        else with_identity(_stage(load, mapping, known, table, entry, quarantine), load.source, table.writer_spec()),
        interval_s=limits.interval_s,
        show_position=kind_of(load.source.kind).position_text,
        show_range=files_of,
        show_end=lambda: offset_text(source.end()),
        survey=lambda positions: told_survey(source.partition, source.survey(positions), spec.settle_s),
        look_everywhere=source.look_everywhere,
        can_learn_columns=lambda: source.first_file() is not None,
        plan_move=partial(plan_file_moves, source),
        is_once=spec.ingestion.value == "once",
    )


def files_of(plan: BatchPlan, bill: Bill | None) -> str:
    """The first and the last file of a batch, as Doris shows them. A bill has no others: files are loaded whole."""
    keys = [part.key for split in plan.splits for part in parse_payload(split.payload).parts]
    names = {"startFileName": min(keys), "endFileName": max(keys)} if keys else {}
    return json.dumps(names, ensure_ascii=False) if names else ""


def offset_text(offset: str | None) -> str:
    """The start of a job as its source wants it."""
    return render_offset(offset) if offset else ""


def files_spec(
    load: LoadSpec, mapping: TranslatedMapping, target: pa.Schema, addresses: AddressRules, settle_s: float = 0.0
) -> FilesSpec:
    """Where the files are and how they are written."""
    source = read_file_source(SourceFunction(name=load.source.kind, properties=load.source.properties))
    spec = files_spec_of(source, load.intake, addresses, settle_s)
    if spec.format is Format.JSON and not spec.json.jsonpaths:
        return replace(spec, schema=_json_schema(load.mapping.target_columns, mapping, spec, target))
    return spec


def _json_schema(filled: tuple[str, ...], mapping: TranslatedMapping, spec: FilesSpec, target: pa.Schema) -> pa.Schema:
    """The keys that the job asks for: a document may have others, and lack some of these."""
    names: dict[str, None] = {}
    for column in mapping.columns or ():
        asked = (filled or target.names) if column.is_star else column.expression.columns if column.expression else ()
        names.update(dict.fromkeys(asked))
    if mapping.where is not None:
        names.update(dict.fromkeys(mapping.where.columns))
    kept = [name for name in names if name not in spec.path_partition_keys]
    return pa.schema([pa.field(name, pa.string()) for name in kept])


def _stage(
    load: LoadSpec,
    translated: TranslatedMapping,
    spec: FilesSpec,
    table: LakeTable,
    entry: TableEntry,
    quarantine: str,
) -> Stage:
    source = without_hidden(output_schema(spec))
    check_source_names(source.names)
    target = table.writer_spec()
    filled = _mapping(load, translated, source, table.schema(), entry)
    mapping = with_partition_nulls(with_defaults(filled, target), target)
    tools = TaskTools(
        read=partial(read_splits, spec),
        open_writer=partial(open_writer, target),
        open_quarantine=partial(QuarantineFile, quarantine),
        batch_id="",
        splits=(),
        columns=tuple(table.schema().names),
    )
    return Stage(mapping=mapping, source=source, tools=tools, timeout_s=load.session.timeout_s)


def _mapping(
    load: LoadSpec, translated: TranslatedMapping, source: pa.Schema, target: pa.Schema, entry: TableEntry
) -> RowMapping:
    columns = translated.columns or ()
    given: list[SparkExpression] = []
    for column in columns:
        if column.is_star:
            given += [column_expression(name) for name in source.names]
        elif column.expression is not None:
            given.append(column.expression)
    asked = [(column.expression.columns if column.expression else ()) for column in columns]
    asked.append(translated.where.columns if translated.where else ())
    _check_columns({name for names in asked for name in names}, source)
    names = list(load.mapping.target_columns or target.names)
    _check_target(names, target, len(given))
    filled = dict(zip(names, given, strict=True))
    lengths = entry.spec.properties if entry.spec else {}
    scope = source_scope(source)
    where = None
    if translated.where is not None:
        exact = _exact_columns(filled, target)
        where = type_expression(translated.where, replace(scope, exact_columns=exact), is_condition=True)
    return RowMapping(
        columns=tuple(
            _column(field, filled.get(field.name), scope, lengths, load.session.time_zone) for field in target
        ),
        where=where.text if where else None,
        where_unread=where.unread if where else None,
        where_tells_by_null=where is not None and where.tells_by_null,
        strict=load.session.strict_values,
    )


def source_scope(source: pa.Schema) -> Scope:
    """The columns of a source, with their types."""
    columns = {field.name.lower(): ScopeColumn(type=source_type(field.type)) for field in source}
    return Scope(columns=columns)


def _exact_columns(filled: Mapping[str, SparkExpression], target: pa.Schema) -> dict[str, ValueType]:
    """Columns of the source that go to a decimal column as they are: WHERE compares their texts as decimals."""
    found: dict[str, ValueType] = {}
    for name, expression in filled.items():
        exact = exact_for(source_type(target.field(name).type))
        if exact is not None and expression.is_column:
            found[expression.columns[0].lower()] = exact
    return found


def _column(
    field: pa.Field, expression: SparkExpression | None, scope: Scope, lengths: Mapping[str, str], zone: str
) -> TargetColumn:
    length = lengths.get(LENGTH_PROPERTY + field.name)
    exact = exact_for(source_type(field.type))
    made = type_expression(expression, replace(scope, exact=exact)) if expression is not None else None
    text, kind = made.text if made else None, spark_type(field.type)
    if made is not None and expression is not None and expression.is_column and made.type == TEXT and zone:
        text = zoned(made.text, kind, zone)
    return TargetColumn(
        name=field.name,
        type=kind,
        nullable=field.nullable,
        expression=text,
        max_length=int(length) if length else None,
        is_text=made is not None and made.type == TEXT,
        unread=made.unread if made else None,
        tells_by_null=made is not None and made.tells_by_null,
    )


def check_source_names(names: Iterable[str]) -> None:
    """Refuse columns of the source that have names of Lading's own."""
    if taken := reserved_names(names):
        msg = f"The source has a column {', '.join(map(repr, taken))}, a name that Lading itself uses"
        raise ConfigError(msg, left="Nothing was changed.", todo="Rename it in the source.")


def _check_columns(asked: set[str], source: pa.Schema) -> None:
    missing = sorted(asked - set(source.names))
    if missing:
        msg = f"Unknown column {', '.join(repr(name) for name in missing)} in the source"
        raise SqlError(msg, todo=f"The files have: {', '.join(source.names)}.")


def _check_target(names: list[str], target: pa.Schema, given: int) -> None:
    unknown = [name for name in names if name not in target.names]
    if unknown:
        msg = f"Unknown column {', '.join(repr(name) for name in unknown)} in the target table"
        raise ConfigError(msg, left="Nothing was changed.", todo=f"It has: {', '.join(target.names)}.")
    if len(names) != given:
        msg = (
            f"insert into cols should be corresponding to the query output: {len(names)} columns are to be filled "
            f"and {given} are selected"
        )
        raise SqlError(msg, todo="Select one expression for each column.")
