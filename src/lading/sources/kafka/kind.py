"""A topic of Kafka, as a kind of source."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import partial

import pyarrow as pa

from lading.clock import Clock
from lading.model.load import LoadSpec
from lading.model.moves import Direction, PartitionMove, direction_of, given_up, plain_way
from lading.model.positions import BEGINNING, PartitionState, Positions
from lading.sources.discovery import is_discovering
from lading.sources.kafka.alter import KAFKA_STARTS, alter, begin_again
from lading.sources.kafka.properties import KAFKA_TAKEN, KafkaProperties, read_kafka_properties
from lading.sources.kafka.settings import settings_for_admins
from lading.sources.kafka.spec import METADATA, KafkaSpec
from lading.sources.kafka.words import by_number, progress, words
from lading.sources.kind import OpenContext, OpenSource
from lading.sources.open_streams import StreamDefaults, StreamParts, StreamSource, check_records, opened_stream
from lading.sources.records.spec import REGISTRY, record_format, registry_access
from lading.sources.starts import OFFSET_BEGINNING, PARTITION_END, kafka_start, start_time_or_none
from lading.sources.streams import StreamSight
from lading.sql.statements.alter import AlteredSource
from lading.status.lag import LagUnit
from lading.storage.aws import has_keys

_NAMES, _PLACES = "kafka_partitions", "kafka_offsets"


def make_source(spec: KafkaSpec, clock: Clock) -> StreamSource:
    """The driver's side of a topic."""
    from lading.sources.kafka.source import KafkaSource

    return KafkaSource(spec, clock)


class KafkaKind(StreamDefaults):
    """See `StreamKind`. A position is the offset of the next record."""

    name = "KAFKA"
    lag_unit = LagUnit.RECORDS
    metadata: pa.Schema = METADATA
    subject = "kafka_topic"
    property_names = KAFKA_TAKEN
    start_properties = KAFKA_STARTS
    used_with_keys = ("aws.region", "aws.role_arn", "property.security.protocol", "property.sasl.mechanism")
    libraries = ("confluent-kafka", "fastavro", "protobuf")
    cluster_property = "kafka_broker_list"
    consumer_property = "property.group.id"

    def uses_service_identity(self, properties: Mapping[str, str]) -> bool:
        return any(name.startswith("aws.") for name in properties) and not has_keys(properties, "aws")

    def admin_properties(self, properties: Mapping[str, str]) -> Collection[str]:
        return settings_for_admins(properties)

    def check(self, load: LoadSpec) -> None:
        asked = read_kafka_properties(load.source.properties)
        check_records(load, self.metadata, has_registry=True, url=asked.registry_url)

    def on_data_loss(self, properties: Mapping[str, str]) -> str:
        return read_kafka_properties(properties).on_data_loss

    def open(self, load: LoadSpec, context: OpenContext) -> OpenSource:
        """One consumer for the driver's questions; executors have their own."""
        from lading.sources.kafka.acknowledger import KafkaAcknowledger
        from lading.sources.kafka.reader import output_schema, read_splits
        from lading.sources.kafka.starts import render_start
        from lading.sources.records.parser import parse_record, stands_alone

        asked, zone = read_kafka_properties(load.source.properties), load.session.time_zone
        check_records(load, self.metadata, has_registry=True, url=asked.registry_url)
        spec = _spec(load, asked, context)
        own = dict(zip(asked.partitions, asked.offsets, strict=False))
        finished = tuple(number for number, at in own.items() if at == PARTITION_END)
        # Where positions are given for some of all partitions, the others came later: nothing of them was read.
        default = OFFSET_BEGINNING if own and asked.discovery == "ON" else asked.default_offset
        own = {number: at for number, at in own.items() if number not in finished}
        made = make_source(spec, context.clock)
        acknowledger = KafkaAcknowledger(spec)

        def start_of(default: str, partitions: Mapping[int, str]) -> str:
            places = {number: place_of(at, zone) for number, at in partitions.items()}
            return render_start(place_of(default, zone), places)

        def resolve(moves: Mapping[str, str]) -> dict[str, str | None]:
            there = {int(name): at for name, at in moves.items() if at != PARTITION_END}
            opened = made.open(start_of(OFFSET_BEGINNING, there)) if there else Positions()
            return {name: opened.partitions[name].at if int(name) in there else None for name in moves}

        def close() -> None:
            acknowledger.close()
            getattr(made, "close", lambda: None)()

        parts = StreamParts(
            source=made,
            read=partial(read_splits, spec),
            parse=partial(parse_record, spec.format) if stands_alone(spec.format, spec.metadata_schema) else None,
            schema=output_schema(spec),
            start=start_of(default, own),
            resolve=resolve,
            finished=[str(number) for number in finished],
            acknowledge=acknowledger.follow,
            close=close,
            registered=partial(_registered, spec, asked),
        )
        return opened_stream(self, load, parts)

    # Positions in the words of SQL.

    def read_start(self, name: str, text: str) -> str:
        return kafka_start(name, text)

    def progress(self, positions: Positions) -> dict[str, str]:
        return progress(positions)

    def words(self, positions: Positions) -> dict[str, str]:
        return words(positions)

    def position_text(self, positions: Positions) -> str:
        return json.dumps(progress(positions), separators=(",", ":"))

    def way(self, old: PartitionState, new: PartitionState) -> Direction:
        if way := plain_way(old, new):
            return way
        is_known = old.at.isdecimal() and new.at.isdecimal()
        return direction_of(int(new.at) - int(old.at)) if is_known else "UNKNOWN"

    def beginning_at(self, properties: Mapping[str, str], positions: Positions) -> dict[str, str]:
        kept = {name: value for name, value in properties.items() if name not in KAFKA_STARTS}
        next_words = words(positions)
        kept |= {_NAMES: ",".join(next_words), _PLACES: ",".join(next_words.values())}
        return {**kept, "property.discovery": "ON"} if is_discovering(properties, _NAMES) else kept

    def plan_move(self, opened: OpenSource, name: str, state: PartitionState, end: str | None) -> PartitionMove:
        """Offsets are counted, whether they have a record or not."""
        if end is None:
            return given_up(name, state, "records")
        old = int(state.at if state.at != BEGINNING else opened.resolve({name: OFFSET_BEGINNING})[name] or 0)
        difference = int(end) - old
        return PartitionMove(
            partition=name,
            start=str(old),
            end=end,
            direction=direction_of(difference),
            again=max(0, -difference),
            skipped=max(0, difference),
            unit="records",
            remark="offsets without a record are counted too" if difference else "",
        )

    def alter(self, old: Mapping[str, str], changed: Mapping[str, str], consumed: Collection[str]) -> AlteredSource:
        return alter(old, changed, consumed)

    def begin_again(self, old: Mapping[str, str], changed: Mapping[str, str]) -> dict[str, str]:
        return begin_again(old, changed)

    # What SHOW tells.

    def shown_source(
        self, properties: Mapping[str, str], positions: Positions, sight: StreamSight | None
    ) -> dict[str, str]:
        asked = read_kafka_properties(properties)
        numbers = sorted((name for name, state in positions.partitions.items() if not state.finished), key=by_number)
        return {
            "topic": asked.topic,
            "currentKafkaPartitions": ",".join(numbers),
            "brokerList": asked.broker_list,
        }

    def shown_default(self, properties: Mapping[str, str]) -> dict[str, str]:
        return {"kafka_default_offsets": read_kafka_properties(properties).default_offset}


def _spec(load: LoadSpec, asked: KafkaProperties, context: OpenContext) -> KafkaSpec:
    client = {name: value for name, value in asked.client.items() if not name.startswith(REGISTRY)}
    client.setdefault("group.id", context.consumer)
    return KafkaSpec(
        brokers=asked.broker_list,
        topic=asked.topic,
        format=record_format(load, context.columns, asked.client, context.watch),
        partitions=asked.partitions if asked.discovery != "ON" else (),
        client=client,
        aws=asked.aws,
        metadata=context.metadata,
        addresses=context.addresses,
    )


def _registered(spec: KafkaSpec, asked: KafkaProperties) -> dict[str, str] | None:
    access = registry_access(asked.client)
    if access is None:
        return None
    from lading.sources.records.registered import registered_columns

    return registered_columns(spec.format.kind, access, spec.topic)


def place_of(start: str, zone: str) -> str:
    """A start as the source wants it: times have their zone."""
    moment = start_time_or_none(start, zone)
    return start if moment is None else moment.isoformat()
