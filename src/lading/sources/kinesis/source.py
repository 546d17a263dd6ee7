"""The driver's side: list, open, plan, look. It reads no rows but one here and there, to see whether there are any."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache

from lading.clock import Clock
from lading.model.batch import Limits, Split
from lading.model.positions import BEGINNING, ListedPartition, Listing, PartitionState, Positions
from lading.sources.kinesis.client import Client, open_client
from lading.sources.kinesis.errors import start_refused
from lading.sources.kinesis.lag import stream_sight
from lading.sources.kinesis.listing import Lister, StreamView
from lading.sources.kinesis.opening import Opener
from lading.sources.kinesis.payload import Payload, is_known_behind, known_until_or_none, render_payload
from lading.sources.kinesis.peek import Peek, Scout
from lading.sources.kinesis.shards import open_shards
from lading.sources.kinesis.spec import KinesisSpec
from lading.sources.kinesis.starts import parse_start
from lading.sources.kinesis.trim import Standing, TrimSight, Way, find_way
from lading.sources.starts import TRIM_HORIZON
from lading.sources.streams import StreamSight

_CONFIRMATIONS = 4
"""How often within the retention it is written down that an idle shard was idle."""
_VIEW_AGE_S = 15.0
_PEEK_AGE_S = 5.0


class KinesisSource:
    """A stream and its shards. Implements `lading.plan.planner.Source`.

    A shard's end is not known before it is read, so a split has a start and limits. What it remembers between calls
    saves calls and decides nothing: a new process plans the same.
    """

    def __init__(self, spec: KinesisSpec, clock: Clock, client: Client | None = None) -> None:
        self._spec, self._clock = spec, clock
        self._client = client or open_client(spec)
        self._lister = Lister(spec, self._client, clock)
        self._scout = Scout(spec, self._client, clock)
        self._view: StreamView | None = None
        self._idle: dict[tuple[str, str], tuple[datetime, datetime]] = {}
        """Per shard and position: since when and until when nothing was unread."""
        self._trimmed_to: datetime | None = None
        """The latest horizon that a listing showed: what was trimmed by a lower retention does not come back."""
        self._looked_at: set[tuple[str, str]] = set()
        """Positions that were found whole since this process began."""
        # A face may look while the job plans: what looking remembers is apart.
        self._looking = threading.Lock()
        self._watcher = Scout(spec, self._client, clock)
        self._seen: StreamView | None = None
        self._seen_s = 0.0

    def check(self) -> None:
        """Raise what is wrong with the stream, the credentials or the pinned shards. For CREATE."""
        self._tracked(self._look())

    def open(self, start: str) -> Positions:
        """Concrete positions. See `opening` for what each start means.

        Dies before they are committed: the start is resolved again, later. After: it stands for ever.
        """
        wanted = parse_start(start)
        view = self._look()
        states = Opener(view, self._tracked(view), self._lister, self._scout).open(wanted)
        return Positions(incarnation=view.incarnation, partitions=states)

    def resolve(self, starts: Mapping[str, str]) -> dict[str, str]:
        """Positions for shards that an operator moves, by the words that `open` takes."""
        view = self._look()
        opener = Opener(view, self._tracked(view), self._lister, self._scout)
        return {shard: opener.state_of(shard, text).at for shard, text in starts.items()}

    def list_partitions(self) -> Listing:
        """Every shard that is kept, or only the pinned ones. Parents that are pinned out are none."""
        view = self._look()
        names = self._spec.shards or tuple(view.shards)
        listed = {name: ListedPartition(parents=self._parents(view, name)) for name in names if name in view.shards}
        return Listing(incarnation=view.incarnation, partitions=listed)

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        """A split for each shard that has something to read, or that is closed and not finished.

        An idle shard costs one small call here and no split. Rows and bytes of the batch are divided among the
        splits; each may overstep its bytes by one record. Shards are read side by side, so each has all the seconds.
        Raises TrimmedError; see `trim.find_way`.
        """
        view = self._view or self._look()
        peeks = self._peeks(view, ready)
        self._note_idle(ready, peeks)
        horizon = view.service_now - view.retention
        self._trimmed_to = max(horizon, self._trimmed_to or horizon)
        sight = TrimSight(
            now=view.service_now,
            retention=view.retention,
            horizon=self._trimmed_to,
            peek_oldest=self._scout.peek_oldest,
            peek_record=self._scout.peek_record,
            open_at_horizon=cache(self._lister.open_at_horizon),
        )
        ways = dict[str, Way]()
        for name, state in sorted(ready.items()):
            standing = Standing(
                shard=name,
                is_closed=self._is_closed(view, name),
                state=state,
                peek=peeks[name],
                known_until=self._idle.get((name, state.at), (None, None))[1],
                is_first_look=(name, state.at) not in self._looked_at,
            )
            ways[name] = find_way(standing, sight)
        self._looked_at = {(name, state.at) for name, state in ready.items()}
        seen = {name: ways[name].oldest or peek for name, peek in peeks.items()}
        self._note_idle(ready, seen)
        chosen = [name for name in sorted(ready) if self._is_wanted(view, name, ready[name], seen[name])]
        return self._splits(view, {name: ready[name].at for name in chosen}, limits, ways)

    def ends(self) -> Mapping[str, str]:
        """Nobody can ask a shard for its last record."""
        return {}

    def sight(self, positions: Positions) -> StreamSight:
        """How far the job is behind, as the stream says now. Finished shards are left out. For any thread."""
        with self._looking:
            return self._sight(positions)

    def _sight(self, positions: Positions) -> StreamSight:
        view = self._seen
        if view is None or self._clock.monotonic_s() - self._seen_s > _VIEW_AGE_S:
            view = self._seen = self._lister.view()
            self._seen_s = self._clock.monotonic_s()
        unread = {
            name: state.at for name, state in positions.partitions.items() if not state.finished and name in view.shards
        }
        self._watcher.forget_all_but(unread)
        peeks = self._watcher.peek_all(unread, max_age_s=_PEEK_AGE_S)
        return stream_sight(view, positions, peeks, now=self._clock.now())

    def pin(self, positions: Positions) -> Callable[[Positions], bool]:
        """Remember this moment; the answer says of positions whether every record that arrived before it was read."""
        with self._looking:
            view = self._lister.view()
            left = {name for name in self._spec.shards or view.shards if name in view.shards}

        def is_reached(now: Positions) -> bool:
            with self._looking:
                left.difference_update({name for name in left if self._is_past(name, now, view.seen_at)})
            return not left

        return is_reached

    def _is_past(self, name: str, positions: Positions, moment: datetime) -> bool:
        """Whether the first record that is not read yet, if there is one, arrived at a moment or later."""
        state = positions.partitions.get(name) or PartitionState(at=BEGINNING)
        if state.finished:
            return True
        peek = self._watcher.peek(name, state.at)
        return peek.is_caught_up or (peek.arrival is not None and peek.arrival >= moment)

    def _look(self) -> StreamView:
        self._view = self._lister.view()
        return self._view

    def _tracked(self, view: StreamView) -> dict[str, tuple[str, ...]]:
        """Shards that the job reads, with those parents that it reads too."""
        if missing := sorted(set(self._spec.shards) - set(view.shards)):
            msg = f"Stream {self._spec.stream} has no shard {', '.join(missing)}"
            raise start_refused(msg, f"It has: {', '.join(sorted(view.shards))}.", shards=missing)
        return {name: self._parents(view, name) for name in self._spec.shards or view.shards}

    def _parents(self, view: StreamView, name: str) -> tuple[str, ...]:
        # Where nothing is pinned, parents that are not listed stay named: they have expired, or a listing that was
        # made too early lacks them, and a later one shows them before the child.
        parents = view.shards[name].parents
        return tuple(parent for parent in parents if not self._spec.shards or parent in self._spec.shards)

    def _peeks(self, view: StreamView, ready: Mapping[str, PartitionState]) -> dict[str, Peek]:
        self._scout.forget_all_but({name: state.at for name, state in ready.items()})
        unsure = {
            name: state.at
            for name, state in ready.items()
            if not self._is_closed(view, name) and not is_known_behind(state, view.retention)
        }
        peeks = self._scout.peek_all(unsure)
        return {name: peeks.get(name) or self._scout.try_position(name, state.at) for name, state in ready.items()}

    def _note_idle(self, ready: Mapping[str, PartitionState], peeks: Mapping[str, Peek]) -> None:
        idle = dict[tuple[str, str], tuple[datetime, datetime]]()
        for name, state in ready.items():
            key, peek = (name, state.at), peeks[name]
            if peek.is_caught_up:
                idle[key] = self._idle[key][0] if key in self._idle else peek.asked_at, peek.asked_at
            elif key in self._idle:
                idle[key] = self._idle[key]
        self._idle = idle

    def _is_wanted(self, view: StreamView, name: str, state: PartitionState, peek: Peek) -> bool:
        if not peek.is_caught_up or self._is_closed(view, name):
            return True
        # Nothing is unread. That is written down before the last confirmation gets too old to prove anything.
        since, until = self._idle[name, state.at]
        return until - (known_until_or_none(state) or since) > view.retention / _CONFIRMATIONS

    def _is_closed(self, view: StreamView, name: str) -> bool:
        return name in view.shards and name not in open_shards(view.shards)

    def _splits(
        self, view: StreamView, starts: Mapping[str, str], limits: Limits, ways: Mapping[str, Way]
    ) -> tuple[Split, ...]:
        count = max(1, len(starts))
        share = replace(limits, rows=max(1, limits.rows // count), size_bytes=max(1, limits.size_bytes // count))
        splits = []
        for number, (name, at) in enumerate(starts.items()):
            shard = view.shards[name]
            payload = Payload(
                hash_start=shard.hash_start,
                hash_end=shard.hash_end,
                verify=ways[name].verify,
                from_oldest=ways[name].oldest is not None,
            )
            splits.append(
                Split(
                    number=number,
                    partition=name,
                    start=at,
                    limits=share,
                    payload=render_payload(payload),
                    least=f"the next record at {at or TRIM_HORIZON}" if share.rows == 1 else "",
                    # What is the oldest record now may be gone when somebody looks again.
                    is_record=share.rows == 1 and bool(at),
                )
            )
        return tuple(splits)
