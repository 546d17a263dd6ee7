"""A stream of Kinesis, as a kind of source."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import pyarrow as pa

from lading.clock import Clock
from lading.model.load import LoadSpec
from lading.model.moves import Direction, PartitionMove, direction_of, given_up, plain_way
from lading.model.positions import PartitionState, Positions, passed_partitions
from lading.sources.discovery import is_discovering
from lading.sources.kind import OpenContext, OpenSource
from lading.sources.kinesis.alter import KINESIS_STARTS, alter, begin_again
from lading.sources.kinesis.properties import KINESIS_NAMES, KinesisProperties, read_kinesis_properties
from lading.sources.kinesis.spec import META, Credentials, KinesisSpec, Kpl
from lading.sources.kinesis.words import NUMBER, is_horizon, progress, words
from lading.sources.open_streams import StreamDefaults, StreamParts, StreamSource, check_records, opened_stream
from lading.sources.records.spec import record_format
from lading.sources.starts import SHARD_END, TRIM_HORIZON, kinesis_start, start_time_or_none
from lading.sources.streams import StreamSight
from lading.sql.properties.records import RECORD_NAMES
from lading.sql.statements.alter import AlteredSource
from lading.status.lag import LagUnit
from lading.storage.aws import has_keys, sts_endpoint_of

_NAMES, _PLACES = "kinesis_shards", "kinesis_shards_pos"


def make_source(spec: KinesisSpec, clock: Clock) -> StreamSource:
    """The driver's side of a stream."""
    from lading.sources.kinesis.source import KinesisSource

    return KinesisSource(spec, clock)


class KinesisKind(StreamDefaults):
    """See `StreamKind`. A position is at, inside or behind a record of a shard, a moment, or an end of it."""

    name = "KINESIS"
    lag_unit = LagUnit.MILLISECONDS
    libraries = ("boto3",)
    metadata: pa.Schema = META
    subject = "kinesis_stream"
    property_names = KINESIS_NAMES | RECORD_NAMES
    start_properties = KINESIS_STARTS
    used_with_keys = ("aws.region", "aws.role_arn")

    def uses_service_identity(self, properties: Mapping[str, str]) -> bool:
        return not has_keys(properties, "aws")

    def check(self, load: LoadSpec) -> None:
        read_kinesis_properties(load.source.properties)
        check_records(load, self.metadata)

    def on_data_loss(self, properties: Mapping[str, str]) -> str:
        return read_kinesis_properties(properties).on_data_loss

    def open(self, load: LoadSpec, context: OpenContext) -> OpenSource:
        from lading.sources.kinesis.reader import output_schema, read_splits
        from lading.sources.kinesis.starts import render_start
        from lading.sources.records.parser import parse_record, stands_alone

        asked, zone = read_kinesis_properties(load.source.properties), load.session.time_zone
        check_records(load, self.metadata)
        own = dict(zip(asked.shards, asked.shard_positions, strict=False))
        finished = tuple(name for name, at in own.items() if at == SHARD_END)
        own = {name: place_of(at, zone) for name, at in own.items() if at != SHARD_END}
        spec = _spec(load, asked, context, _pinned(asked, finished))
        made = make_source(spec, context.clock)
        is_partial = bool(asked.shard_positions) and asked.discovery == "ON"
        default = TRIM_HORIZON if is_partial or finished else place_of(asked.default_position, zone)

        def resolve(moves: Mapping[str, str]) -> dict[str, str | None]:
            there = {name: place_of(at, zone) for name, at in moves.items() if at != SHARD_END}
            opened = made.open(render_start(TRIM_HORIZON, there)) if there else Positions()
            return {name: opened.partitions[name].at if name in there else None for name in moves}

        parts = StreamParts(
            source=made,
            read=partial(read_splits, spec),
            parse=partial(parse_record, spec.format) if stands_alone(spec.format, spec.meta_schema) else None,
            schema=output_schema(spec),
            start=render_start(default, own),
            resolve=resolve,
            finished=finished,
            close=getattr(made, "close", lambda: None),
        )
        return opened_stream(self, load, parts)

    # Positions in the words of SQL.

    def read_start(self, name: str, text: str) -> str:
        return kinesis_start(name, text)

    def progress(self, positions: Positions) -> dict[str, str]:
        return progress(positions)

    def words(self, positions: Positions) -> dict[str, str]:
        return words(positions)

    def position_text(self, positions: Positions) -> str:
        return json.dumps(progress(positions), separators=(",", ":"))

    def way(self, old: PartitionState, new: PartitionState) -> Direction:
        return plain_way(old, new) or _way(old.at, new.at)

    def beginning_at(self, properties: Mapping[str, str], positions: Positions) -> dict[str, str]:
        kept = {name: value for name, value in properties.items() if name not in KINESIS_STARTS}
        next_words = words(positions)
        kept |= {_NAMES: ",".join(next_words), _PLACES: ",".join(next_words.values())}
        return {**kept, "property.discovery": "ON"} if is_discovering(properties, _NAMES) else kept

    def plan_move(self, opened: OpenSource, name: str, state: PartitionState, end: str | None) -> PartitionMove:
        """Nobody counts what lies between two positions."""
        if end is None:
            return given_up(name, state, "records")
        if state.at == end and not state.finished:
            return PartitionMove(partition=name, start=state.at, end=end, direction="SAME", again=0, skipped=0)
        direction = _way(state.at, end)
        return PartitionMove(
            partition=name,
            start=state.at,
            end=end,
            direction="BACK" if state.finished else direction,
            again=0 if direction in ("FORWARD", "SAME") and not state.finished else None,
            skipped=0 if direction in ("BACK", "SAME") else None,
            unit="records",
            remark="Kinesis does not count the records between two positions",
        )

    def alter(self, old: Mapping[str, str], changed: Mapping[str, str], consumed: Collection[str]) -> AlteredSource:
        return alter(old, changed, consumed)

    def begin_again(self, old: Mapping[str, str], changed: Mapping[str, str]) -> dict[str, str]:
        return begin_again(old, changed)

    def given_up_by(self, old: Mapping[str, str], new: Mapping[str, str], positions: Positions) -> tuple[str, ...]:
        """Shards that are named become the only ones that are read."""
        before, after = old.get(_NAMES), new.get(_NAMES)
        if after is None or before == after or new.get("property.discovery", "").upper() == "ON":
            return ()
        kept = {part.strip() for part in after.split(",")}
        return tuple(part for part, state in positions.partitions.items() if part not in kept and not state.finished)

    # What SHOW tells.

    def shown_source(
        self, properties: Mapping[str, str], positions: Positions, sight: StreamSight | None
    ) -> dict[str, str]:
        asked = read_kinesis_properties(properties)
        opened, closed = _open_and_closed(positions, sight)
        endpoint = {"endpoint": asked.endpoint} if asked.endpoint else {}
        return {
            "region": asked.region,
            "stream": asked.stream,
            **endpoint,
            "openKinesisShards": ",".join(opened),
            "closedKinesisShards": ",".join(closed),
        }

    def shown_default(self, properties: Mapping[str, str]) -> dict[str, str]:
        return {"kinesis_default_pos": read_kinesis_properties(properties).default_position}

    def shown_counts(self, positions: Positions, sight: StreamSight | None) -> dict[str, int]:
        if sight is not None and sight.facts:
            return dict(sight.facts)
        opened, closed = _open_and_closed(positions, None)
        return {
            "openShardNum": len(opened),
            "closedShardNum": len(closed),
            "trackedShardNum": len(opened),
            "cachedMillisBehindLatestShardNum": 0,
            "totalMillisBehindLatest": 0,
            "maxMillisBehindLatest": 0,
        }


def _spec(load: LoadSpec, asked: KinesisProperties, context: OpenContext, shards: tuple[str, ...]) -> KinesisSpec:
    return KinesisSpec(
        stream=asked.stream,
        region=asked.region,
        format=record_format(load, context.columns, watch=context.watch),
        endpoint=asked.endpoint,
        stream_arn=asked.stream_arn,
        credentials=Credentials(
            access_key=asked.access_key,
            secret_key=asked.secret_key,
            session_token=asked.session_key,
            provider=asked.credentials_provider,
            role_arn=asked.role_arn,
            external_id=asked.external_id,
            sts_endpoint=sts_endpoint_of(asked.endpoint),
            addresses=context.addresses,
        ),
        request_timeout_ms=asked.request_timeout_ms,
        connection_timeout_ms=asked.connection_timeout_ms,
        shards=shards,
        kpl=Kpl(asked.kpl),
        max_records=asked.max_records,
        max_results=asked.max_results,
        meta=context.metadata,
        addresses=context.addresses,
    )


def _pinned(asked: KinesisProperties, finished: Sequence[str]) -> tuple[str, ...]:
    """Shards that are read to their end need not be there any more; but no shard at all would mean all of them."""
    if asked.discovery == "ON":
        return ()
    return tuple(name for name in asked.shards if name not in finished) or asked.shards


def place_of(start: str, zone: str) -> str:
    """A start as the source wants it. A plain number names the first record that is loaded."""
    moment = start_time_or_none(start, zone)
    return start if moment is None else f"AT_TIMESTAMP({moment.isoformat()})"


def _way(start: str, end: str) -> Direction:
    old, new = NUMBER.fullmatch(start), NUMBER.fullmatch(end)
    if old and new:
        return direction_of(_rank(new) - _rank(old))
    if is_horizon(start) and is_horizon(end):
        return "SAME"
    if old and is_horizon(end):
        return "BACK"
    return "FORWARD" if new and is_horizon(start) else "UNKNOWN"


def _rank(position: re.Match[str]) -> int:
    """AT 5, inside 5, AFTER 5, AT 6: numbers that grow like the positions."""
    inside = 10**9 if position[1] == "AFTER" else int(position[3] or 0)
    return int(position[2]) * (10**9 + 1) + inside


def _open_and_closed(positions: Positions, sight: StreamSight | None) -> tuple[Sequence[str], Sequence[str]]:
    """As the stream tells; where it does not, what was not read to its end may be open."""
    if sight is not None and (sight.open_partitions or sight.closed_partitions):
        return sight.open_partitions, sight.closed_partitions
    passed = passed_partitions(positions)
    states = sorted((name, state) for name, state in positions.partitions.items() if name not in passed)
    return [name for name, state in states if not state.finished], [name for name, state in states if state.finished]
