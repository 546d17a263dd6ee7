"""A stream as a job opens it, whichever stream it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from lading.errors import LadingError, SqlError
from lading.model.batch import BatchPlan, Limits, Split
from lading.model.bill import Bill
from lading.model.load import LoadSpec
from lading.model.moves import PartitionMove
from lading.model.positions import Listing, PartitionState, Positions
from lading.plan.planner import Source
from lading.sources.hidden import without_hidden
from lading.sources.kind import OpenSource, StreamKind
from lading.sources.records.spec import REGISTRY, records_of
from lading.sources.streams import StreamSight
from lading.sql.properties.routine import REGISTRY_FORMATS, invalid_format
from lading.status.lag import LagUnit


class StreamSource(Source, Protocol):
    """The driver's side of a stream that is open: `open`, `list_partitions` and `plan` of `Source`, and its lag."""

    def sight(self, positions: Positions) -> StreamSight:
        """How far a job is behind, as the stream tells now. May be slow, and may fail."""
        ...

    def ends(self) -> Mapping[str, str]:
        """Where partitions ended when a batch was last planned; empty when the stream does not tell."""
        ...

    def pin(self, positions: Positions) -> Callable[[Positions], bool]:
        """Remember where the stream ends now; the answer says of later positions whether they are there."""
        ...


class StreamDefaults:
    """What holds of most streams: kinds of streams are made from it. See `StreamKind`."""

    libraries: Collection[str] = ()
    cluster_property = ""
    consumer_property = ""
    used_with_keys: Collection[str] = ()
    property_names: Collection[str] = ()
    start_properties: Collection[str] = ()
    keeps_offset = False
    is_ordered = True

    def names_again(self, old: str, new: str) -> bool:
        return False

    def repeats_nothing(self, was: PartitionState, now: PartitionState) -> bool:
        return False

    def is_local(self, properties: Mapping[str, str]) -> bool:
        return False

    def admin_properties(self, properties: Mapping[str, str]) -> Collection[str]:
        return ()

    def located(
        self, source: Mapping[str, str], properties: Mapping[str, str]
    ) -> tuple[Mapping[str, str], Mapping[str, str]]:
        return source, properties

    def start_warning(self, load: LoadSpec) -> str:
        return ""

    def moved(self, properties: Mapping[str, str], moves: Sequence[PartitionMove]) -> Mapping[str, str]:
        return properties

    def places_of(self, offset: str, partitions: Collection[str]) -> dict[str, str]:
        """`{"0": "1000"}`: for each partition that is named, what is read of it next."""
        try:
            found = json.loads(offset)
        except ValueError:
            found = None
        if not isinstance(found, dict) or not found or not all(isinstance(at, str | int) for at in found.values()):
            msg = f"Invalid format for offset: {offset!r} does not say by partition what is read next"
            raise SqlError(msg, property="offset", todo='Write {"partition": "position", …}, as in CREATE.')
        return {name: self.read_start("offset", str(at)) for name, at in found.items()}

    def read_start(self, name: str, text: str) -> str:
        """A position in the words of SQL. Raises SqlError."""
        return text

    def given_up_by(self, old: Mapping[str, str], new: Mapping[str, str], positions: Positions) -> tuple[str, ...]:
        """ALTER moves partitions and never chooses others."""
        return ()

    def shown_counts(self, positions: Positions, sight: StreamSight | None) -> dict[str, int]:
        return {}


def check_records(load: LoadSpec, metadata: pa.Schema, *, has_registry: bool = False, url: str = "") -> None:
    """Refuse records that cannot be read: of a format that needs a registry where the stream has none, or names none;
    with names of what the stream itself tells.
    """
    records = records_of(load)
    format = records.options.format
    if taken := [name for name in records.columns if name.lower() in metadata.names]:
        msg = f"columns names {', '.join(taken)}, which the stream itself tells of a record"
        raise SqlError(msg, property="columns", todo="Give this field another name.")
    if format not in REGISTRY_FORMATS:
        return
    if not has_registry:
        raise invalid_format(format)
    if not url:
        name = f"property.{REGISTRY}url"
        msg = f"{name} is a required property for the format {format}"
        raise SqlError(msg, property=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamParts:
    """What a kind of stream makes of a load."""

    source: StreamSource
    read: Callable[[Sequence[Split]], Iterator[Any]]
    """What executors do. It pickles."""
    schema: pa.Schema
    """Source columns and metadata as they were asked, and hidden ones behind them."""
    start: str
    resolve: Callable[[Mapping[str, str]], dict[str, str | None]]
    finished: Collection[str] = ()
    """Partitions that count as finished from the start: the job that this one goes on from had read them."""
    parse: Callable[[bytes], Iterator[Any]] | None = None
    """See `OpenSource`."""
    acknowledge: Callable[[Bill], None] = lambda bill: None
    close: Callable[[], None] = lambda: None
    registered: Callable[[], dict[str, str] | None] = lambda: None


def opened_stream(kind: StreamKind, load: LoadSpec, parts: StreamParts) -> OpenSource:
    """The parts as a source that is open."""
    source = _WithFinished(parts.source, parts.finished) if parts.finished else parts.source
    schema = without_hidden(parts.schema, keeps_rest=bool(load.evolution.rescued_column))
    named = [name for name in schema.names if name not in kind.metadata.names]
    return OpenSource(
        driver=source,
        read=parts.read,
        parse=parts.parse,
        schema=schema,
        knows=f"A record has: {', '.join(named)}; the stream tells: {', '.join(kind.metadata.names)}.",
        start=parts.start,
        resolve=parts.resolve,
        show_range=partial(_range_text, kind),
        show_end=partial(_end_text, kind, source),
        read_s=float(load.limits.interval_s),
        sight=source.sight,
        behind=partial(_lag_text, kind.lag_unit, source),
        pin=source.pin,
        acknowledge=parts.acknowledge,
        close=parts.close,
        registered=parts.registered,
    )


def _range_text(kind: StreamKind, plan: BatchPlan, bill: Bill | None) -> str:
    """By partition: the first record that a batch reads, and the last one where that is known."""
    ranges = bill.ranges if bill is not None else plan.splits
    starts = kind.words(_places({each.partition: each.start for each in ranges}))
    ends = kind.progress(_places({each.partition: each.end for each in ranges if each.end is not None}))
    shown = {name: {"start": at, **({"end": ends[name]} if name in ends else {})} for name, at in starts.items()}
    return json.dumps(shown, separators=(",", ":")) if shown else ""


def _end_text(kind: StreamKind, source: StreamSource) -> str:
    """The last record that each partition was known to have, as its position is shown."""
    ends = source.ends()
    return kind.position_text(_places(ends)) if ends else ""


def _places(places: Mapping[str, str]) -> Positions:
    return Positions(partitions={name: PartitionState(at=at) for name, at in places.items()})


def _lag_text(unit: LagUnit, source: StreamSource, positions: Positions) -> str:
    """How far the job is behind, in words; nothing when the stream does not tell."""
    try:
        sight = source.sight(positions)
    except LadingError:
        return ""
    known = [lag for lag in sight.lag.values() if lag is not None]
    if not known:
        return ""
    is_time = unit is LagUnit.MILLISECONDS
    text = f"lag {max(known)} ms" if is_time else f"lag {sum(known)} {unit.value}"
    if sight.seconds_to_trim is not None:
        text += f"; the oldest unread row is kept for {int(sight.seconds_to_trim)} s more"
    return text


class _WithFinished:
    """A stream some of whose partitions were finished or given up by the job that this one goes on from."""

    def __init__(self, source: StreamSource, finished: Collection[str]) -> None:
        self._source = source
        self._finished = frozenset(finished)
        self.sight, self.ends, self.pin = source.sight, source.ends, source.pin

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

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        return self._source.plan(ready, limits)
