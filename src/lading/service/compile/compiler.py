"""From a load to everything that runs it, whatever it loads from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lading.clock import Clock
from lading.ids import JobId
from lading.jobs.record import JobRecord, WindowLimits
from lading.model.batch import Limits
from lading.model.job import ErrorBudget, Job
from lading.model.load import LoadSpec, SourceSpec
from lading.model.pairs import single_sources
from lading.net.addresses import AddressRules
from lading.pipeline.mapping import RowMapping
from lading.pipeline.quarantine import QuarantineFile, QuarantineObject
from lading.pipeline.stage import Stage
from lading.pipeline.state.copies import StateCopies
from lading.pipeline.state.files import StatePlace
from lading.pipeline.state.rules import StateRule
from lading.pipeline.tasks import Quarantine, TaskTools
from lading.service.compile.column_defaults import with_defaults
from lading.service.compile.compiled import Compiled
from lading.service.compile.event_time import check_names, state_rule, watermark_rule, with_event_time, with_state
from lading.service.compile.evolution import watch_of
from lading.service.compile.exploded import with_elements
from lading.service.compile.joins import JoinSource, join_columns, join_rule, joined_source_load, map_joined_rows
from lading.service.compile.kept_form import row_form
from lading.service.compile.listening import listen_rule
from lading.service.compile.mapping import asked_columns, map_rows
from lading.service.compile.nested import check_written
from lading.service.compile.partition_nulls import with_partition_nulls
from lading.service.compile.stream_joins import map_stream_rows, stream_columns, stream_join_rule
from lading.service.compile.vector import vector_plan
from lading.service.compile.windows import map_window_rows, row_load, window_rule
from lading.service.security.endpoints import endpoints_of
from lading.sources.files.properties import is_s3_uri
from lading.sources.kind import OpenContext, OpenSource, SourceKind
from lading.sources.registry import kind_of
from lading.sql.expressions.vector_nodes import Refusal
from lading.sql.statements.load_specs import translate_mapping
from lading.store.records import TableEntry
from lading.tables.base import LakeTable, WriterSpec
from lading.tables.bills import quarantine_folder, state_folder
from lading.tables.fresh import open_table_store
from lading.tables.registry import kind_of as table_kind_of
from lading.tables.registry import open_writer, task_modules
from lading.tables.types import fillable

WINDOW_BATCHES = 10
"""Bad rows are counted over so many times the rows of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where rows go: the table of a job, and the folder of its bad rows."""

    table: LakeTable
    entry: TableEntry
    quarantine: str | None
    """None: bad rows go beside the table, because not all who write or read them see the home."""
    state_copies: StateCopies | None = None
    """Where executors keep copies of state files that are far away. None: nowhere."""
    joined: JoinSource | None = None
    """The table that rows are joined with."""
    no_vector: Refusal | None = None
    """Why the job may not take the vector path, whatever its mapping is."""


def compile_load(record: JobRecord, load: LoadSpec, target: Target, context: OpenContext) -> Compiled:
    """Check a load, with its secrets, against its table and its source, and put its parts together."""
    kind = kind_of(load.source.kind)
    kind.check(load)
    watch = watch_of(load, target.table)
    columns, metadata = _asked(load, target, kind)
    rule = listen_rule(load, target.table.writer_spec().partition_fields) if load.listening is not None else None
    asked = replace(context, reads_rows=True, columns=columns, metadata=metadata, watch=watch)
    opened = kind.open(load, asked)
    try:
        opened = with_elements(load, opened)
        stage = _stage(load, kind, opened, target, record.job_id)
    except BaseException:
        opened.close()
        raise
    budget = load.budget
    return Compiled(
        job=Job(
            job_id=record.job_id,
            name=record.name,
            start=opened.start,
            definition=record.definition,
            limits=_limits(load, opened, record.batch_scale),
            # Bad rows that are counted over a window are judged after their commit.
            budget=ErrorBudget(strict=budget.is_strict, max_ratio=budget.max_ratio)
            if budget.max_errors is None
            else ErrorBudget(),
            on_data_loss=kind.on_data_loss(load.source.properties),
            watermark=watermark_rule(load),
            keeps_state=any(kept is not None for kept in (load.dedup, load.window, load.stream_join)),
            listening=rule,
        ),
        kind=kind,
        source=opened,
        stage=stage,
        interval_s=float(load.limits.interval_s),
        listeners=load.listening.listeners if load.listening is not None else (),
        joins=target.joined if load.join is not None else None,
    )


def _asked(load: LoadSpec, target: Target, kind: SourceKind) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is asked of a row, and beside its content."""
    if load.stream_join is not None:
        return stream_columns(load, load.stream_join), ()
    reads = row_load(load) if load.join is None else joined_source_load(load, load.join)
    return asked_columns(reads, _columns(load, target), kind.metadata)


def _columns(load: LoadSpec, target: Target) -> pa.Schema:
    """The columns of the table that can be filled. Raises ConfigError for others that the load fills."""
    named = [column.name for column in translate_mapping(load).columns or () if column.name]
    filled = load.mapping.target_columns if load.mapping.is_select else named
    return fillable(target.table.schema(), filled)


def open_context(record: JobRecord, load: LoadSpec, clock: Clock, addresses: AddressRules) -> OpenContext:
    """What the source of a job is opened with, to run it or to ask it."""
    rules = {side: _cluster_rules(source, addresses) for side, source in single_sources(load.source).items()}
    consumer = f"{record.name}_{record.job_id}"
    return OpenContext(consumer=consumer, clock=clock, addresses=rules.get("", addresses), side_addresses=rules)


def open_source(record: JobRecord, load: LoadSpec, clock: Clock, addresses: AddressRules) -> OpenSource:
    """The source of a load that has its secrets, for questions only: no row is read."""
    return kind_of(load.source.kind).open(load, open_context(record, load, clock, addresses))


def _cluster_rules(source: SourceSpec, rules: AddressRules) -> AddressRules:
    """Where the hosts may be that a cluster tells of: somebody who trusts a cluster trusts it with those."""
    kind = kind_of(source.kind)
    if not kind.cluster_property:
        return rules
    first = endpoints_of({kind.cluster_property: source.properties.get(kind.cluster_property, "")})
    return replace(rules, allow_private=True) if all(rules.names(each.host) for each in first) else rules


def window_of(load: LoadSpec) -> WindowLimits | None:
    """How many bad rows may be committed before the job is paused. None: each batch is judged before its commit."""
    if load.budget.max_errors is None:
        return None
    return WindowLimits(
        max_errors=load.budget.max_errors,
        max_ratio=load.budget.max_ratio,
        rows=(load.limits.rows or Limits().rows) * WINDOW_BATCHES,
    )


def _limits(load: LoadSpec, opened: OpenSource, scale: float) -> Limits:
    """The bounds of one batch. A batch that died twice is planned smaller."""
    most = Limits()
    return Limits(
        rows=max(1, int((load.limits.rows or most.rows) * scale)),
        size_bytes=max(1, int(load.limits.size_bytes * scale)),
        files=max(1, int((load.limits.files or most.files) * scale)),
        seconds=most.seconds if opened.read_s is None else opened.read_s,
    )


def _stage(load: LoadSpec, kind: SourceKind, opened: OpenSource, target: Target, job_id: JobId) -> Stage | None:
    if opened.schema is None:
        return None
    spec, schema = target.table.writer_spec(), _columns(load, target)
    open_quarantine = _quarantine(target, spec, job_id)
    mapping, rule = _rules(load, opened, opened.schema, target, open_quarantine)
    check_written(mapping, spec.schema)
    reads = load if load.join is None else joined_source_load(load, load.join)
    is_joined = load.join is not None or load.stream_join is not None
    stage = Stage(
        mapping=mapping if load.stream_join is not None else with_event_time(mapping, reads, opened.schema),
        source=opened.schema,
        of_batch=opened.of_batch,
        tools=TaskTools(
            read=opened.read,
            open_writer=partial(open_writer, spec),
            open_quarantine=open_quarantine,
            batch_id="",
            splits=(),
            nested={column.name: schema.field(column.name) for column in mapping.columns if column.nested},
            is_strict=mapping.strict,
            form=row_form(load, opened, opened.schema),
            rescued=load.evolution.rescued_column,
            columns=join_columns(mapping) if is_joined else tuple(column.name for column in mapping.columns),
        ),
        most_tasks=load.limits.tasks,
        timeout_s=load.timeout_s,
        timeout_is="session.insert_timeout" if load.mapping.is_select else "timeout, ten times max_batch_interval",
        # The service's cloud identity is lent where the source or the table has no keys of its own.
        reads_as_service=kind.uses_service_identity(load.source.properties),
        writes_as_service=is_s3_uri(spec.location) and not spec.options.access_key,
        libraries=_libraries(kind, spec),
        modules=task_modules(spec.format),
    )
    place = StatePlace(
        open=partial(open_table_store, spec),
        folder=state_folder(job_id),
        copies=target.state_copies if is_s3_uri(spec.location) else None,
    )
    whole = with_state(stage, rule, schema, place)
    return replace(whole, vector=target.no_vector or vector_plan(whole))


def _libraries(kind: SourceKind, spec: WriterSpec) -> tuple[str, ...]:
    """What the tasks of a job import."""
    stored = ("boto3",) if is_s3_uri(spec.location) else ()
    return tuple(sorted({*kind.libraries, *table_kind_of(spec.format).libraries, *stored}))


def _quarantine(target: Target, spec: WriterSpec, job_id: JobId) -> Callable[[str], Quarantine]:
    """Where bad rows go."""
    if target.quarantine is not None:
        return partial(QuarantineFile, target.quarantine)
    if not is_s3_uri(spec.location):
        return partial(QuarantineFile, f"{target.table.bills.storage.uri}/{quarantine_folder(job_id)}")
    return partial(QuarantineObject, partial(open_table_store, spec), quarantine_folder(job_id))


def _rules(
    load: LoadSpec,
    opened: OpenSource,
    source: pa.Schema,
    target: Target,
    quarantine: Callable[[str], Quarantine],
) -> tuple[RowMapping, StateRule | None]:
    """What is done to a row when it is read, and what afterwards."""
    spec, schema = target.table.writer_spec(), _columns(load, target)
    lengths = target.entry.spec.properties if target.entry.spec else {}
    if load.stream_join is not None:
        mapping = map_stream_rows(load, load.stream_join, source, opened.knows)
        both = stream_join_rule(load, load.stream_join, mapping, schema, lengths, quarantine)
        return mapping, replace(both, mapping=_written(both.mapping, spec))
    if load.join is not None and target.joined is not None:
        mapping = map_joined_rows(load, load.join, source, opened.knows)
        joined = join_rule(load, load.join, mapping, schema, lengths, target.joined, quarantine)
        return mapping, replace(joined, mapping=_written(joined.mapping, spec))
    if load.window is not None:
        check_names(schema)
        mapping = map_window_rows(load, load.window, source, opened.knows)
        window = window_rule(load, load.window, mapping, schema, lengths)
        return mapping, replace(window, mapping=_written(window.mapping, spec))
    mapping = map_rows(load, schema, lengths, source, opened.knows, opened.told)
    return _written(mapping, spec), state_rule(load, schema, mapping)


def _written(mapping: RowMapping, spec: WriterSpec) -> RowMapping:
    """What fills the columns of a table, with their defaults, and what its partitions do to NULL."""
    return with_partition_nulls(with_defaults(mapping, spec), spec)
