"""From the source of a routine load to what reads it: words of SQL on one side, those of the source on the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from lading.clock import Clock
from lading.jobs.record import JobRecord
from lading.model.batch import BatchPlan, Split
from lading.model.bill import Bill
from lading.model.load import LoadSpec
from lading.model.positions import Listing, PartitionState, Positions
from lading.net.addresses import AddressRules
from lading.plan.planner import Source
from lading.service.compile.mapping import Mapped
from lading.service.compile.positions import kafka_progress, kafka_words, kinesis_progress, kinesis_words
from lading.service.security.endpoints import endpoints_of
from lading.sources.aws import sts_endpoint_of
from lading.sources.records.spec import RecordFormat, RecordKind, RegistryAccess
from lading.sources.streams import StreamSight
from lading.sql.properties.kafka import KafkaProperties
from lading.sql.properties.kinesis import KinesisProperties
from lading.sql.properties.starts import OFFSET_BEGINNING, PARTITION_END, SHARD_END, TRIM_HORIZON, start_time_or_none
from lading.sql.statements.definitions import REGISTRY_URL, check_format, read_stream_source
from lading.sql.statements.parts import SourceFunction

_REGISTRY = "schema.registry."


class StreamSource(Source, Protocol):
    """A source that can tell how far a job is behind."""

    def sight(self, positions: Positions) -> StreamSight: ...

    def ends(self) -> Mapping[str, str]:
        """Where partitions ended when a batch was last planned; empty when the stream does not tell."""
        ...

    def pin(self, positions: Positions) -> Callable[[Positions], bool]:
        """Remember where the stream ends now; the answer says of later positions whether they are there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The source of one job, opened."""

    source: StreamSource
    read: Callable[[Sequence[Split]], Iterator[Any]]
    schema: pa.Schema
    """Source columns and metadata, without the hidden ones."""
    start: str
    """Where the job begins, as the source wants it."""
    resolve: Callable[[Mapping[str, str]], dict[str, str | None]]
    """Positions for partitions that an operator moves, by the words of SQL."""
    progress: Callable[[Positions], dict[str, str]]
    """What was read of each partition, in the words of SHOW."""
    words: Callable[[Positions], dict[str, str]]
    """What is read next of each partition, in the words of a statement that begins there."""
    lag_unit: str
    acknowledge: Callable[[Bill], None] = lambda bill: None
    """Tell the stream what was committed. Best effort: nothing is ever read back."""
    close: Callable[[], None] = lambda: None


def stream_properties(load: LoadSpec) -> KafkaProperties | KinesisProperties:
    """The properties of the stream of a load."""
    source = read_stream_source(SourceFunction(name=load.source.kind, properties=load.source.properties))
    check_format(load.records.format, source)
    return source


def metadata_of(source: KafkaProperties | KinesisProperties) -> pa.Schema:
    """The columns that a stream can tell of a record beside its content."""
    if isinstance(source, KafkaProperties):
        from lading.sources.kafka.spec import METADATA

        return METADATA
    from lading.sources.kinesis.spec import META

    return META


def open_stream(record: JobRecord, load: LoadSpec, mapped: Mapped, clock: Clock, addresses: AddressRules) -> Stream:
    """The source of a load that has its secrets. Nothing is asked of the stream yet."""
    source = stream_properties(load)
    if isinstance(source, KafkaProperties):
        return _open_kafka(record, load, source, mapped, clock, addresses)
    return _open_kinesis(load, source, mapped, clock, addresses)


def record_format(
    load: LoadSpec, source: KafkaProperties | KinesisProperties, columns: tuple[str, ...]
) -> RecordFormat:
    """How rows stand in a record."""
    registry = None
    kind = RecordKind(load.records.format)
    if kind.needs_registry and isinstance(source, KafkaProperties):
        client = source.client
        settings = {name.removeprefix(_REGISTRY): value for name, value in client.items() if name.startswith(_REGISTRY)}
        registry = RegistryAccess(url=client[REGISTRY_URL], settings={k: v for k, v in settings.items() if k != "url"})
    return RecordFormat(kind=kind, columns=columns, csv=load.records.csv, json=load.records.json, registry=registry)


# Kafka.


def make_kafka_source(spec: Any, clock: Clock) -> StreamSource:
    """The driver's side of a topic."""
    from lading.sources.kafka.source import KafkaSource

    return KafkaSource(spec, clock)


def _open_kafka(
    record: JobRecord,
    load: LoadSpec,
    source: KafkaProperties,
    mapped: Mapped,
    clock: Clock,
    addresses: AddressRules,
) -> Stream:
    from lading.sources.kafka.acknowledger import KafkaAcknowledger
    from lading.sources.kafka.reader import output_schema, read_splits
    from lading.sources.kafka.spec import KafkaSpec
    from lading.sources.kafka.starts import render_start

    zone = load.session.time_zone
    client = {name: value for name, value in source.client.items() if not name.startswith(_REGISTRY)}
    client.setdefault("group.id", f"{record.name}_{record.job_id}")
    own = dict(zip(source.partitions, source.offsets, strict=False))
    finished = tuple(number for number, at in own.items() if at == PARTITION_END)
    spec = KafkaSpec(
        brokers=source.broker_list,
        topic=source.topic,
        format=record_format(load, source, mapped.source_columns),
        partitions=source.partitions if source.discovery != "ON" else (),
        client=client,
        aws=source.aws,
        metadata=mapped.metadata,
        addresses=kafka_rules(addresses, source.broker_list),
    )
    # Where positions are given for some of all partitions, the others came later: nothing of them was read.
    default = OFFSET_BEGINNING if own and source.discovery == "ON" else source.default_offset
    own = {number: at for number, at in own.items() if number not in finished}
    made = make_kafka_source(spec, clock)
    acknowledger = KafkaAcknowledger(spec)

    def start_of(default: str, partitions: Mapping[int, str]) -> str:
        return render_start(
            kafka_place(default, zone), {number: kafka_place(at, zone) for number, at in partitions.items()}
        )

    def resolve(moves: Mapping[str, str]) -> dict[str, str | None]:
        there = {int(name): at for name, at in moves.items() if at != PARTITION_END}
        opened = made.open(start_of(OFFSET_BEGINNING, there)) if there else Positions()
        return {name: opened.partitions[name].at if int(name) in there else None for name in moves}

    def close() -> None:
        acknowledger.close()
        getattr(made, "close", lambda: None)()

    return Stream(
        source=_WithFinished(made, [str(number) for number in finished]) if finished else made,
        read=partial(read_splits, spec),
        schema=_shown_columns(output_schema(spec), mapped),
        start=start_of(default, own),
        resolve=resolve,
        progress=kafka_progress,
        words=kafka_words,
        lag_unit="records",
        acknowledge=acknowledger.follow,
        close=close,
    )


def kafka_rules(rules: AddressRules, brokers: str) -> AddressRules:
    """Where the brokers may be that a cluster tells of: whoever trusts a cluster trusts it with those."""
    is_trusted = all(rules.names(each.host) for each in endpoints_of({"kafka_broker_list": brokers}))
    return replace(rules, allow_private=True) if is_trusted else rules


def kafka_place(start: str, zone: str) -> str:
    """A start as the source wants it: times have their zone."""
    moment = start_time_or_none(start, zone)
    return start if moment is None else moment.isoformat()


# Kinesis.


def make_kinesis_source(spec: Any, clock: Clock) -> StreamSource:
    """The driver's side of a stream."""
    from lading.sources.kinesis.source import KinesisSource

    return KinesisSource(spec, clock)


def _open_kinesis(
    load: LoadSpec,
    source: KinesisProperties,
    mapped: Mapped,
    clock: Clock,
    addresses: AddressRules,
) -> Stream:
    from lading.sources.kinesis.reader import output_schema, read_splits
    from lading.sources.kinesis.spec import Credentials, KinesisSpec, Kpl
    from lading.sources.kinesis.starts import render_start

    zone = load.session.time_zone
    own = dict(zip(source.shards, source.shard_positions, strict=False))
    finished = tuple(name for name, at in own.items() if at == SHARD_END)
    own = {name: kinesis_place(at, zone) for name, at in own.items() if at != SHARD_END}
    spec = KinesisSpec(
        stream=source.stream,
        region=source.region,
        format=record_format(load, source, mapped.source_columns),
        endpoint=source.endpoint,
        stream_arn=source.stream_arn,
        credentials=Credentials(
            access_key=source.access_key,
            secret_key=source.secret_key,
            session_token=source.session_key,
            provider=source.credentials_provider,
            role_arn=source.role_arn,
            external_id=source.external_id,
            sts_endpoint=sts_endpoint_of(source.endpoint),
            addresses=addresses,
        ),
        request_timeout_ms=source.request_timeout_ms,
        connection_timeout_ms=source.connection_timeout_ms,
        shards=_pinned(source, finished),
        kpl=Kpl(source.kpl),
        max_records=source.max_records,
        max_results=source.max_results,
        meta=mapped.metadata,
        addresses=addresses,
    )
    made = make_kinesis_source(spec, clock)
    is_partial = bool(source.shard_positions) and source.discovery == "ON"
    default = TRIM_HORIZON if is_partial or finished else kinesis_place(source.default_position, zone)

    def resolve(moves: Mapping[str, str]) -> dict[str, str | None]:
        there = {name: kinesis_place(at, zone) for name, at in moves.items() if at != SHARD_END}
        opened = made.open(render_start(TRIM_HORIZON, there)) if there else Positions()
        return {name: opened.partitions[name].at if name in there else None for name in moves}

    return Stream(
        source=_WithFinished(made, finished) if finished else made,
        read=partial(read_splits, spec),
        schema=_shown_columns(output_schema(spec), mapped),
        start=render_start(default, own),
        resolve=resolve,
        progress=kinesis_progress,
        words=kinesis_words,
        lag_unit="ms",
        close=getattr(made, "close", lambda: None),
    )


def _pinned(source: KinesisProperties, finished: Sequence[str]) -> tuple[str, ...]:
    """Shards that are read to their end need not be there any more; but no shard at all would mean all of them."""
    if source.discovery == "ON":
        return ()
    return tuple(name for name in source.shards if name not in finished) or source.shards


def kinesis_place(start: str, zone: str) -> str:
    """A start as the source wants it. A plain number names the first record that is loaded."""
    moment = start_time_or_none(start, zone)
    return start if moment is None else f"AT_TIMESTAMP({moment.isoformat()})"


class _WithFinished:
    """A stream some of whose partitions were finished or given up by the job that this one goes on from."""

    def __init__(self, source: StreamSource, finished: Sequence[str]) -> None:
        self._source = source
        self._finished = frozenset(finished)

    def open(self, start: str) -> Positions:
        """Those partitions count as finished; those that have expired meanwhile are not needed."""
        opened = self._source.open(start)
        done: dict[str, PartitionState] = {
            name: replace(state, finished=True) if name in self._finished else state
            for name, state in opened.partitions.items()
        }
        return replace(opened, partitions=done)

    def list_partitions(self) -> Listing:
        return self._source.list_partitions()

    def plan(self, ready: Mapping[str, PartitionState], limits: Any) -> tuple[Split, ...]:
        return self._source.plan(ready, limits)

    def sight(self, positions: Positions) -> StreamSight:
        return self._source.sight(positions)

    def ends(self) -> Mapping[str, str]:
        return self._source.ends()

    def pin(self, positions: Positions) -> Callable[[Positions], bool]:
        return self._source.pin(positions)


def _shown_columns(whole: pa.Schema, mapped: Mapped) -> pa.Schema:
    return pa.schema(list(whole)[: len(mapped.source_columns) + len(mapped.metadata)])


def range_text(stream: Stream, plan: BatchPlan, bill: Bill | None) -> str:
    """By partition: the first record that a batch reads, and the last one where that is known."""
    ranges = bill.ranges if bill is not None else plan.splits
    starts = stream.words(_places({each.partition: each.start for each in ranges}))
    ends = stream.progress(_places({each.partition: each.end for each in ranges if each.end is not None}))
    shown = {name: {"start": at, **({"end": ends[name]} if name in ends else {})} for name, at in starts.items()}
    return json.dumps(shown, separators=(",", ":")) if shown else ""


def end_text(stream: Stream) -> str:
    """The last record that each partition was known to have, as its position is shown."""
    ends = stream.source.ends()
    return progress_text(stream, _places(ends)) if ends else ""


def _places(places: Mapping[str, str]) -> Positions:
    return Positions(partitions={name: PartitionState(at=at) for name, at in places.items()})


def progress_text(stream: Stream, positions: Positions) -> str:
    """The position as jobs are shown with it."""
    return json.dumps(stream.progress(positions), separators=(",", ":"))
