"""From the text of a routine load to everything that runs it."""

from __future__ import annotations

from functools import partial

from lading.clock import Clock
from lading.errors import LadingError
from lading.jobs.record import JobRecord, WindowLimits
from lading.model.batch import Limits
from lading.model.job import Job
from lading.model.positions import Positions
from lading.net.addresses import AddressRules
from lading.pipeline.quarantine import QuarantineFile
from lading.pipeline.stager import Stage
from lading.pipeline.tasks import TaskTools
from lading.service.compile.column_defaults import with_defaults
from lading.service.compile.compiled import Compiled, with_identity
from lading.service.compile.mapping import Mapped, map_rows
from lading.service.compile.partition_nulls import with_partition_nulls
from lading.service.compile.streams import Stream, end_text, metadata_of, open_stream, progress_text, range_text
from lading.sql.properties.routine import RoutineLoadProperties
from lading.sql.statements.definitions import RoutineLoadDefinition, define_routine_load
from lading.sql.statements.jobs import CreateRoutineLoad
from lading.sql.syntax.masking import without_secrets
from lading.sql.syntax.render import render
from lading.store.records import TableEntry
from lading.tables.base import LakeTable
from lading.tables.registry import open_writer

WINDOW_BATCHES = 10
"""Bad rows are counted over so many times the rows of a batch."""


def compile_routine(
    record: JobRecord,
    statement: CreateRoutineLoad,
    table: LakeTable,
    entry: TableEntry,
    quarantine: str,
    clock: Clock,
    *,
    addresses: AddressRules,
) -> Compiled:
    """Check a routine load against its table, and put its parts together. The stream is not asked yet."""
    definition = define_routine_load(statement)
    mapped = map_definition(definition, table, entry)
    stream = open_stream(record, definition, mapped, clock, addresses)
    target = table.writer_spec()
    mapping = with_partition_nulls(with_defaults(mapped.mapping, target), target)
    tools = TaskTools(
        read=stream.read,
        open_writer=partial(open_writer, target),
        open_quarantine=partial(QuarantineFile, quarantine),
        batch_id="",
        splits=(),
        columns=tuple(table.schema().names),
    )
    most_tasks = definition.properties.desired_concurrent_number
    return Compiled(
        job=Job(
            job_id=record.job_id,
            name=record.name,
            start=stream.start,
            definition=render(without_secrets(statement)),
            limits=limits_of(definition.properties, record.batch_scale),
            on_data_loss=definition.source.on_data_loss,
        ),
        source=stream.source,
        stage=with_identity(
            Stage(mapping=mapping, source=stream.schema, tools=tools, most_tasks=most_tasks), statement.source, target
        ),
        interval_s=float(definition.properties.max_batch_interval_s),
        show_position=partial(progress_text, stream),
        show_range=partial(range_text, stream),
        show_end=partial(end_text, stream),
        remark=partial(lag_remark, stream),
        behind=partial(lag_remark, stream),
        pin=stream.source.pin,
        acknowledge=stream.acknowledge,
        close=stream.close,
    )


def map_definition(definition: RoutineLoadDefinition, table: LakeTable, entry: TableEntry) -> Mapped:
    """The clauses of a definition against its table."""
    lengths = entry.spec.properties if entry.spec else {}
    return map_rows(definition, table.schema(), lengths, metadata_of(definition.source))


def limits_of(properties: RoutineLoadProperties, scale: float = 1.0) -> Limits:
    """The bounds of one batch. A batch that died twice is planned smaller."""
    return Limits(
        rows=max(1, int(properties.max_batch_rows * scale)),
        size_bytes=max(1, int(properties.max_batch_bytes * scale)),
        seconds=float(properties.max_batch_interval_s),
    )


def window_of(properties: RoutineLoadProperties) -> WindowLimits:
    """How many bad rows may be committed before the job is paused."""
    return WindowLimits(
        max_errors=properties.max_error_number,
        max_ratio=properties.max_filter_ratio,
        rows=properties.max_batch_rows * WINDOW_BATCHES,
    )


def lag_remark(stream: Stream, positions: Positions) -> str:
    """How far the job is behind, in words; nothing when the stream does not tell."""
    try:
        sight = stream.source.sight(positions)
    except LadingError:
        return ""
    known = [lag for lag in sight.lag.values() if lag is not None]
    if not known:
        return ""
    behind = max(known) if stream.lag_unit == "ms" else sum(known)
    told = f"lag {behind} {stream.lag_unit}"
    if sight.seconds_to_trim is not None:
        told += f"; the oldest unread row is kept for {int(sight.seconds_to_trim)} s more"
    return told
