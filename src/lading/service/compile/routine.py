"""From a load of a stream to everything that runs it."""

from __future__ import annotations

from functools import partial

from lading.clock import Clock
from lading.errors import LadingError
from lading.jobs.record import JobRecord, WindowLimits
from lading.model.batch import Limits
from lading.model.job import Job
from lading.model.load import LoadSpec
from lading.model.positions import Positions
from lading.net.addresses import AddressRules
from lading.pipeline.quarantine import QuarantineFile
from lading.pipeline.stager import Stage
from lading.pipeline.tasks import TaskTools
from lading.service.compile.column_defaults import with_defaults
from lading.service.compile.compiled import Compiled, with_identity
from lading.service.compile.mapping import map_rows
from lading.service.compile.partition_nulls import with_partition_nulls
from lading.service.compile.streams import end_text, open_stream, range_text
from lading.sources.kind import Stream
from lading.sources.registry import stream_kind
from lading.status.lag import LagUnit
from lading.store.records import TableEntry
from lading.tables.base import LakeTable
from lading.tables.registry import open_writer

MOST_ROWS = 20_000_000
"""Of a batch, where a load does not say it."""
WINDOW_BATCHES = 10
"""Bad rows are counted over so many times the rows of a batch."""


def compile_routine(
    record: JobRecord,
    load: LoadSpec,
    table: LakeTable,
    entry: TableEntry,
    quarantine: str,
    clock: Clock,
    *,
    addresses: AddressRules,
) -> Compiled:
    """Check a routine load against its table, and put its parts together. The stream is not asked yet."""
    kind = stream_kind(load.source.kind)
    kind.check(load)
    lengths = entry.spec.properties if entry.spec else {}
    mapped = map_rows(load, table.schema(), lengths, kind.metadata)
    stream = open_stream(record, load, mapped, clock, addresses)
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
    return Compiled(
        job=Job(
            job_id=record.job_id,
            name=record.name,
            start=stream.start,
            definition=record.definition,
            limits=limits_of(load, record.batch_scale),
            on_data_loss=kind.on_data_loss(load.source.properties),
        ),
        source=stream.source,
        stage=with_identity(
            Stage(mapping=mapping, source=stream.schema, tools=tools, most_tasks=load.limits.tasks), load.source, target
        ),
        interval_s=float(load.limits.interval_s),
        show_position=kind.position_text,
        show_range=partial(range_text, kind),
        show_end=partial(end_text, kind, stream),
        remark=partial(lag_remark, kind.lag_unit, stream),
        behind=partial(lag_remark, kind.lag_unit, stream),
        pin=stream.source.pin,
        acknowledge=stream.acknowledge,
        close=stream.close,
    )


def limits_of(load: LoadSpec, scale: float = 1.0) -> Limits:
    """The bounds of one batch. A batch that died twice is planned smaller."""
    return Limits(
        rows=max(1, int((load.limits.rows or MOST_ROWS) * scale)),
        size_bytes=max(1, int(load.limits.size_bytes * scale)),
        seconds=float(load.limits.interval_s),
    )


def window_of(load: LoadSpec) -> WindowLimits | None:
    """How many bad rows may be committed before the job is paused. None: each batch is judged before its commit."""
    if load.budget.max_errors is None:
        return None
    return WindowLimits(
        max_errors=load.budget.max_errors,
        max_ratio=load.budget.max_ratio,
        rows=(load.limits.rows or MOST_ROWS) * WINDOW_BATCHES,
    )


def lag_remark(unit: LagUnit, stream: Stream, positions: Positions) -> str:
    """How far the job is behind, in words; nothing when the stream does not tell."""
    try:
        sight = stream.source.sight(positions)
    except LadingError:
        return ""
    known = [lag for lag in sight.lag.values() if lag is not None]
    if not known:
        return ""
    is_time = unit is LagUnit.MILLISECONDS
    told = f"lag {max(known)} ms" if is_time else f"lag {sum(known)} {unit.value}"
    if sight.seconds_to_trim is not None:
        told += f"; the oldest unread row is kept for {int(sight.seconds_to_trim)} s more"
    return told
