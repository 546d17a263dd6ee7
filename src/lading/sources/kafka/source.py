"""The driver's side: list, plan, count. It never reads a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from lading.clock import Clock
from lading.model.batch import Limits, Split
from lading.model.positions import BEGINNING, ListedPartition, Listing, PartitionState, Positions
from lading.sources.kafka.client import check_settings
from lading.sources.kafka.epochs import epoch_marks, epoch_or_none
from lading.sources.kafka.errors import beyond_end, not_an_offset, partition_missing, trimmed
from lading.sources.kafka.listing import Bounds, Cluster, Topic
from lading.sources.kafka.payload import Payload, render_payload
from lading.sources.kafka.shares import share_bytes, share_rows
from lading.sources.kafka.spec import KafkaSpec
from lading.sources.kafka.starts import (
    OFFSET_BEGINNING,
    OFFSET_END,
    moment_of,
    offset_or_none,
    parse_start,
)
from lading.sources.streams import StreamSight


class KafkaSource:
    """The partitions of one topic. Implements `lading.plan.planner.Source`.

    The position is the next offset as decimal digits. Ends are those of decided transactions (the last stable offset):
    what is behind them may still be aborted. Of the limits of a batch, rows hold here; bytes and seconds are kept by
    the reader, which may stop before the end that was planned.
    """

    def __init__(self, spec: KafkaSpec, clock: Clock, *, timeout_s: float = 10.0) -> None:
        check_settings(spec)
        self._spec = spec
        self._cluster = Cluster(spec, clock, timeout_s=timeout_s)
        self._incarnation: str | None = None
        self._ends: dict[str, str] = {}
        self._whole: dict[int, tuple[int, int]] = {}
        """By partition: up to where its log is known to be whole, and under which leader. Saves asking again."""

    def open(self, start: str) -> Positions:
        """Concrete offsets for all partitions there are now, from what `render_start` wrote."""
        begin = parse_start(start)
        topic = self._topic()
        numbers = self._chosen(topic)
        for number in (*self._spec.partitions, *begin.partitions):
            if number not in numbers:
                raise partition_missing(self._spec.topic, number)
        places = {number: begin.partitions.get(number, begin.default) for number in numbers}
        bounds = self._cluster.bounds(places)
        states = {
            # Behind the end nobody has the records yet, so no leader can vouch for them.
            str(number): PartitionState(
                at=str(at), marks=epoch_marks(bounds.epoch.get(number) if at <= bounds.end[number] else None)
            )
            for number, at in self._resolve(places, bounds).items()
        }
        return Positions(incarnation=topic.incarnation, partitions=states)

    def list_partitions(self) -> Listing:
        """All partitions, or the pinned ones that exist. The topic's id tells it from another of the same name."""
        topic = self._topic()
        names = [str(number) for number in self._chosen(topic)]
        partitions = {name: ListedPartition() for name in names}
        # A broker that has not yet heard of new partitions lists fewer of them; none ever goes.
        return Listing(incarnation=topic.incarnation, partitions=partitions, can_shrink=False)

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        """One split per partition that has something to read. Raises TrimmedError or SourceError."""
        if not ready:
            return ()
        states = {int(name): state for name, state in ready.items()}
        bounds = self._cluster.bounds(sorted(states))
        self._ends = {str(number): str(end) for number, end in sorted(bounds.end.items())}
        starts = {number: self._start(number, state, bounds) for number, state in sorted(states.items())}
        self._check_ends([number for number, at in starts.items() if at > bounds.end[number]], starts)
        self._check_logs(states, starts, bounds)
        rows = share_rows(
            {number: bounds.end[number] - at for number, at in starts.items() if at < bounds.end[number]}, limits.rows
        )
        sizes = share_bytes(rows, limits.size_bytes)
        identity = self._topic().incarnation if self._incarnation is None else self._incarnation
        return tuple(
            Split(
                number=place,
                partition=str(number),
                start=states[number].at,
                end=str(starts[number] + rows[number]),
                may_end_early=True,
                limits=replace(limits, rows=rows[number], size_bytes=sizes[number]),
                least=f"offset {starts[number]}" if rows[number] == 1 else "",
                is_record=rows[number] == 1,
                payload=render_payload(
                    Payload(first=starts[number], incarnation=identity, leader_epoch=bounds.epoch.get(number))
                ),
            )
            for place, number in enumerate(sorted(rows))
        )

    def ends(self) -> Mapping[str, str]:
        """The next offset that each partition was going to write when a batch was last planned."""
        return self._ends

    def sight(self, positions: Positions) -> StreamSight:
        """How many offsets each partition is behind its end. Raises ListingError when nobody knows."""
        states = {int(name): state for name, state in positions.partitions.items() if not state.finished}
        bounds = self._cluster.bounds(sorted(states))
        lag = {}
        for number, state in sorted(states.items()):
            at = bounds.low[number] if state.at == BEGINNING else offset_or_none(state.at)
            lag[str(number)] = None if at is None else max(0, bounds.end[number] - at)
        return StreamSight(lag=lag, open_partitions=tuple(lag))

    def pin(self, positions: Positions) -> Callable[[Positions], bool]:
        """Remember the ends of this moment; the answer says of positions whether all of them were reached."""
        bounds = self._cluster.bounds(self._chosen(self._topic()))
        ends = {str(number): end for number, end in bounds.end.items() if end > bounds.low[number]}

        def is_reached(now: Positions) -> bool:
            states = {name: now.partitions.get(name) for name in ends}
            return all(
                state is not None and (state.finished or (offset_or_none(state.at) or 0) >= ends[name])
                for name, state in states.items()
            )

        return is_reached

    def close(self) -> None:
        """Drop the connection."""
        self._cluster.close()

    def _topic(self) -> Topic:
        topic = self._cluster.topic()
        self._incarnation = topic.incarnation
        return topic

    def _chosen(self, topic: Topic) -> tuple[int, ...]:
        if not self._spec.partitions:
            return topic.partitions
        return tuple(number for number in topic.partitions if number in self._spec.partitions)

    def _resolve(self, places: Mapping[int, str], bounds: Bounds) -> dict[int, int]:
        offsets = {number: offset for number, place in places.items() if (offset := offset_or_none(place)) is not None}
        words = {OFFSET_BEGINNING: bounds.low, OFFSET_END: bounds.end}
        symbols = {number: words[place][number] for number, place in places.items() if place in words}
        times = {number: moment_of(place) for number, place in places.items() if number not in {**offsets, **symbols}}
        found = self._cluster.at_times(times)
        moments = {number: bounds.end[number] if at is None else at for number, at in found.items()}
        resolved = {**offsets, **symbols, **moments}
        return {number: resolved[number] for number in places}

    def _start(self, number: int, state: PartitionState, bounds: Bounds) -> int:
        low = bounds.low[number]
        # A partition that was found later began at 0. What is gone of it was never read.
        at = 0 if state.at == BEGINNING else offset_or_none(state.at)
        if at is None:
            raise not_an_offset(str(number), state.at)
        if at < low:
            raise trimmed(self._spec.topic, number, at, low)
        return at

    def _check_logs(self, states: Mapping[int, PartitionState], starts: Mapping[int, int], bounds: Bounds) -> None:
        """After an election the new leader is asked whether it has what was read under the old one."""
        places = dict[int, tuple[int, int]]()
        for number, state in states.items():
            was, now, at = epoch_or_none(state), bounds.epoch.get(number), starts[number]
            if was is not None and now is not None and was != now and self._whole.get(number) != (at, now):
                places[number] = at, was
        if places:
            self._cluster.check_not_cut(places)
            self._whole.update({number: (at, bounds.epoch[number]) for number, (at, _) in places.items()})

    def _check_ends(self, suspects: Iterable[int], starts: Mapping[int, int]) -> None:
        """A position may be among open transactions, where an operator put it; it may not be behind the log."""
        suspected = tuple(suspects)
        if not suspected:
            return
        marks = self._cluster.high_watermarks(suspected)
        for number, mark in marks.items():
            if starts[number] > mark:
                raise beyond_end(self._spec.topic, number, starts[number], mark)
