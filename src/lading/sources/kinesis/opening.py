"""From a start, symbolic or not, to concrete positions of every shard there is.

Every shard that is listed gets a position, also those that need not be read: they are recorded as finished, because a
shard that the job does not know would look new in the next listing and be read from its beginning.

| start | open shards | closed shards |
| --- | --- | --- |
| TRIM_HORIZON | from the oldest record that is kept | the same; children wait for their parents |
| AT_TIMESTAMP(t) | from t | from t if they were open at t or later, which the service tells; else finished |
| AT_TIMESTAMP(before all that is kept) | as TRIM_HORIZON | as TRIM_HORIZON |
| LATEST | from behind the newest record, or from now if there is none | as with AT_TIMESTAMP(now) |
| a number, for one shard | from that record, with it | the same |
| a number, for all | its own shard from there, shards that come from it from their beginning | older ones finished |

A number belongs to one shard. If there are shards that neither are older nor come from its own, the start says nothing
about them and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime

from lading.model.positions import PartitionState
from lading.sources.kinesis.errors import start_refused
from lading.sources.kinesis.listing import Lister, StreamView
from lading.sources.kinesis.payload import render_marks
from lading.sources.kinesis.peek import Scout
from lading.sources.kinesis.position import (
    BEGINNING,
    HORIZON,
    Kind,
    Position,
    after_sequence,
    at_time,
    from_horizon,
    render_position,
)
from lading.sources.kinesis.shards import ancestors, descendants
from lading.sources.kinesis.starts import Start, place_or_none
from lading.sources.kinesis.trim import EDGE

MAX_TIP_CALLS = 5
_THREADS = 8


class Opener:
    """Resolves starts against one view of a stream."""

    def __init__(self, view: StreamView, tracked: Mapping[str, tuple[str, ...]], lister: Lister, scout: Scout) -> None:
        self._view, self._tracked, self._lister, self._scout = view, tracked, lister, scout
        self._since: dict[datetime, set[str] | None] = {}

    def open(self, start: Start) -> dict[str, PartitionState]:
        """A state for every shard."""
        if strange := sorted(set(start.shards) - set(self._tracked)):
            msg = f"A position is given for {', '.join(strange)}, which the job does not read"
            todo = f"The stream has: {', '.join(sorted(self._tracked)) or 'none'}."
            raise start_refused(msg, todo, shards=strange)
        whole = place_or_none(start.default)
        states = dict[str, PartitionState]()
        rest = [name for name in self._tracked if name not in start.shards]
        if whole is not None and whole.has_sequence and len(rest) > 1:
            states.update(self._by_owner(whole, rest))
            rest = []
        given = {name: start.of(name) for name in [*start.shards, *rest]}
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="lading-open") as pool:
            for moment in {self._moment(self._place_or_none(text)) for text in given.values()} - {None}:
                self._open_since(moment)  # type: ignore[arg-type]  # None was taken out
            found = pool.map(lambda item: self._state(*item), given.items())
            states.update(zip(given, found, strict=True))
        return {name: replace(states[name], parents=parents) for name, parents in self._tracked.items()}

    def state_of(self, shard: str, text: str) -> PartitionState:
        """A state for one shard that is moved."""
        if shard not in self._tracked:
            msg = f"Shard {shard} is not one of the stream's"
            raise start_refused(msg, f"The stream has: {', '.join(sorted(self._tracked))}.", shard=shard)
        return self._state(shard, text)

    def _state(self, shard: str, text: str) -> PartitionState:
        place = self._place_or_none(text)
        moment = self._moment(place)
        if moment is not None and self._is_behind(shard, moment):
            return PartitionState(at=render_position(at_time(moment)), finished=True)
        if place is None:
            return self._at_tip(shard)
        if place.has_sequence and not self._takes(shard, place):
            msg = f"Shard {shard} does not take the sequence number {place.sequence}"
            raise start_refused(msg, "Numbers belong to one shard of one stream.", shard=shard, position=text)
        if place.kind is Kind.HORIZON:
            return PartitionState(at=render_position(from_horizon(self._view.seen_at)))
        return PartitionState(at=render_position(place))

    def _place_or_none(self, text: str) -> Position | None:
        """A moment before all that is kept means all that is kept."""
        place = place_or_none(text)
        if place is None or place.time is None:
            return place
        return HORIZON if place.time <= self._view.service_now - self._view.retention + EDGE else place

    def _moment(self, place: Position | None) -> datetime | None:
        if place is None:
            # A fast local clock would skip rows, a slow one only looks further back: the earlier of both is taken.
            return at_time(self._view.seen_at).time
        if place.kind is Kind.TIME and place.time is not None and place.time > self._view.service_now:
            msg = f"The start {place.time.isoformat()} is in the future"
            raise start_refused(msg, "Use LATEST to begin with what comes from now on.", time=place.time)
        return place.time if place.kind is Kind.TIME else None

    def _is_behind(self, shard: str, moment: datetime) -> bool:
        """Whether a shard was closed before a moment."""
        since = self._open_since(moment)
        return since is not None and shard not in since and not self._view.shards[shard].is_open

    def _open_since(self, moment: datetime) -> set[str] | None:
        if moment not in self._since:
            self._since[moment] = self._lister.open_since_or_none(moment)
        return self._since[moment]

    def _at_tip(self, shard: str) -> PartitionState:
        """Behind the newest record. The service's clock shows whole seconds only, so what came in the last of them is
        looked through. What is found was there before the job was; nothing that comes later is passed over."""
        moment = self._view.seen_at
        newest, arrival, ended = self._scout.read_to_tip(shard, at_time(moment), max_calls=MAX_TIP_CALLS)
        if newest is None:
            return PartitionState(at=render_position(at_time(moment)), finished=ended)
        marks = render_marks(arrival=arrival, current=None, lag_ms=None)
        return PartitionState(at=render_position(after_sequence(newest)), finished=ended, marks=marks)

    def _takes(self, shard: str, place: Position) -> bool:
        peek = self._scout.try_position(shard, render_position(place))
        return not (peek.refused or peek.gone)

    def _by_owner(self, place: Position, names: list[str]) -> dict[str, PartitionState]:
        owners = {name for name in names if self._takes(name, place)}
        if not owners:
            msg = f"The sequence number {place.sequence} belongs to no shard of the stream"
            raise start_refused(msg, "Use a number of this stream, or TRIM_HORIZON.", position=str(place.sequence))
        older, younger = ancestors(self._view.shards, owners), descendants(self._view.shards, owners)
        strange = sorted(set(names) - owners - older - younger)
        if strange:
            msg = (
                f"The sequence number {place.sequence} belongs to {', '.join(sorted(owners))} and says nothing about "
                f"{', '.join(strange)}"
            )
            todo = "Give each shard its position with kinesis_shards and kinesis_shards_pos, or use AT_TIMESTAMP(…)."
            raise start_refused(msg, todo, shards=strange)
        at_owner, at_younger = PartitionState(at=render_position(place)), PartitionState(at=render_position(BEGINNING))
        done = PartitionState(at=render_position(BEGINNING), finished=True)
        return {name: at_owner if name in owners else done if name in older else at_younger for name in names}
