"""From committed positions to the splits of the next batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol
from zlib import crc32

from lading.clock import Clock, Moment
from lading.errors import ListingError, TrimmedError
from lading.model.batch import GONE, BatchPlan, Gap, Limits, PoisonRecord, Split
from lading.model.positions import (
    Listing,
    PartitionState,
    Positions,
    doubtful_partitions,
    in_step,
    merge_listing,
    move_positions,
    ready_partitions,
    take_in_new,
)


class Source(Protocol):
    """The driver's side of a source. Cheap: it lists and counts, it does not read rows.

    Laws: the same range gives the same rows for ever, or a loud error. An error is never an empty answer.
    `list_partitions` returns every partition that still holds rows or can still get some, or raises.
    Not promised: that a listing is newer than the one before. So what a listing lacks is asked for again before it is
    believed; for a source whose partitions never go (`Listing.can_shrink`) it is never believed.
    """

    def open(self, start: str) -> Positions:
        """Turn a start, symbolic or not, into concrete positions of all partitions there are now."""
        ...

    def list_partitions(self) -> Listing:
        """All partitions, from every page."""
        ...

    def plan(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        """Choose splits. Raises TrimmedError (facts: partition, at, horizon) when unread rows are gone."""
        ...


CONFIRM_AFTER_S = (0.2, 0.8, 2.0)
"""How long to wait before each further listing that must also lack a partition."""


AHEAD_S = 1.0
"""For how long a plan that was made ahead is taken. What came since is in the next batch."""


class Planner:
    """Plans batches of one job from one source."""

    def __init__(
        self,
        source: Source,
        clock: Clock,
        *,
        on_data_loss: str = "PAUSE",
        is_narrow: bool = False,
        poison: PoisonRecord | None = None,
    ) -> None:
        """`is_narrow`: batches were cut because some died. Where no partition can be read in smaller parts, only one of
        them is read, so that a batch that dies tells which record did it. `poison` is a record that is not parsed any
        more: the batch that begins with it puts it into quarantine, and does no more."""
        self._source = source
        self._clock = clock
        self._continues = on_data_loss.upper() == "CONTINUE"
        self._is_narrow = is_narrow
        self._poison = poison
        self._base: Positions | None = None
        self._known_at = self._planned_at = Moment.of(clock)
        self._ahead: tuple[Positions, Limits, BatchPlan, float] | None = None

    def open(self, start: str) -> Positions:
        """Concrete positions for the opening bill."""
        return self._source.open(start)

    def take_in(self, base: Positions) -> Positions:
        """The base and every partition that is new in the source, so that an operator can move those too."""
        return take_in_new(base, self._source.list_partitions())

    def plan_ahead(self, base: Positions, limits: Limits) -> BatchPlan:
        """The same as `plan`, for somebody who asks whether there is a batch. One that follows at once takes it."""
        found = self._plan(self._in_step(base), limits)
        self._ahead = (base, limits, found, self._clock.monotonic_s())
        return found

    def plan(self, base: Positions, limits: Limits) -> BatchPlan:
        """Splits of the next batch; none when there is nothing to read. Nothing durable happens."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[:2] == (base, limits):
            *_, found, at_s = ahead
            if found.splits and not found.gaps and self._clock.monotonic_s() - at_s < AHEAD_S:
                return found
        return self._plan(self._in_step(base), limits)

    def _in_step(self, base: Positions) -> Positions:
        """The base by the clock as it is now, which somebody may have set since the plan that the base is from."""
        if base is not self._base:
            self._base, self._known_at = base, self._planned_at
        self._planned_at = Moment.of(self._clock)
        return in_step(base, self._known_at.jump_to(self._planned_at))

    def _plan(self, base: Positions, limits: Limits) -> BatchPlan:
        listing = self._confirmed_listing(base)
        known, lost = self._without_lost(base, listing)
        merged, gaps = merge_listing(known, listing, self._clock.now()), list(lost)
        while True:
            try:
                splits = self._chosen(ready_partitions(base, merged), limits)
            except TrimmedError as error:
                if not self._continues:
                    raise
                merged, gap = self._skip_gap(merged, error)
                gaps.append(gap)
            else:
                kept = self._narrowed(splits, merged, limits)
                waiting = {split.partition for split in splits} - {split.partition for split in kept}
                return BatchPlan(positions=self._with_waiting(merged, waiting), splits=kept, gaps=tuple(gaps))

    def _chosen(self, ready: Mapping[str, PartitionState], limits: Limits) -> tuple[Split, ...]:
        """What the source plans: by single records or files, where the next one of a partition is not to be parsed."""
        place = self._poison.place if self._poison is not None else None
        known = ready.get(place.partition) if place is not None else None
        is_next = place is not None and known is not None and known.at == place.at
        return self._source.plan(ready, replace(limits, rows=1, files=1) if is_next else limits)

    def _narrowed(self, splits: tuple[Split, ...], positions: Positions, limits: Limits) -> tuple[Split, ...]:
        """What is read of as many partitions as a tiny batch may have rows, or of one; mostly all splits.

        Splits of one partition belong together, those of several do not: a partition that is left out stays where it
        is, and is read by a later batch.
        """
        if passing := self._passing_over(splits):
            return passing
        names = sorted({split.partition for split in splits})
        most = limits.rows if all(split.limits.rows == 1 for split in splits) else len(names)
        if self._is_narrow and all(split.least for split in splits):
            most = 1
        if len(names) <= most:
            return splits
        # Others after each commit, and the same when it is planned again: what died is tried alone again.
        places = "".join(f"{name}={state.at};" for name, state in sorted(positions.partitions.items()))
        first = crc32(places.encode()) % len(names)
        chosen = (names[first:] + names[:first])[:most]
        kept = [split for split in splits if split.partition in chosen]
        return tuple(replace(split, number=number) for number, split in enumerate(kept))

    def _passing_over(self, splits: tuple[Split, ...]) -> tuple[Split, ...]:
        """The splits of the record or the file that is not to be parsed, when it is next; a file may have several."""
        if self._poison is None:
            return ()
        place, reason = self._poison.place, self._poison.reason
        own = [split for split in splits if (split.partition, split.least) == (place.partition, place.words)]
        if not own or own[0].start != place.at or not all(split.is_record for split in own):
            return ()
        return tuple(
            replace(split, number=number, poison=reason, poison_at=place.inside, is_checked=self._poison.is_checked)
            for number, split in enumerate(own)
        )

    def _with_waiting(self, positions: Positions, waiting: Collection[str]) -> Positions:
        """Partitions that have rows and are left out are not idle: the watermark waits for them."""
        if not waiting:
            return positions
        now, known = self._clock.now(), positions.partitions
        # None: the job has no watermark, or the partition is new.
        seen = {name: replace(known[name], read_at=now) for name in waiting if known[name].read_at is not None}
        return replace(positions, partitions={**known, **seen})

    def _confirmed_listing(self, base: Positions) -> Listing:
        """A listing in which partitions that the job knows are missing only if several listings in a row lack them."""
        listing = self._source.list_partitions()
        missing = doubtful_partitions(base, listing, self._clock.now())
        for wait_s in CONFIRM_AFTER_S:
            if not missing:
                return listing
            self._clock.sleep(wait_s)
            again = self._source.list_partitions()
            missing &= doubtful_partitions(base, again, self._clock.now())
            # Two listings of one moment may each lack what the other has: a partition that any of them showed is there.
            listing = replace(again, partitions={**listing.partitions, **again.partitions})
        if lacking := sorted(name for name in missing & base.partitions.keys() if not listing.can_go(name)):
            raise _old_listing(lacking)
        return listing

    def _without_lost(self, base: Positions, listing: Listing) -> tuple[Positions, list[Gap]]:
        """Where the user chose to go on, give up partitions that vanished unread, and write each down."""
        known, gaps = base, list[Gap]()
        while self._continues:
            try:
                merge_listing(known, listing, self._clock.now())
            except TrimmedError as error:
                known, gap = self._skip_gap(known, error)
                gaps.append(gap)
            else:
                break
        return known, gaps

    def _skip_gap(self, positions: Positions, error: TrimmedError) -> tuple[Positions, Gap]:
        """Go on behind the gap. A lost partition ends where it is."""
        partition, horizon = error.facts["partition"], error.facts["horizon"]
        start = positions.partitions[partition].at
        gap = Gap(partition=partition, start=start, end=horizon or GONE, reason=error.what, at=self._clock.now())
        return move_positions(positions, {partition: horizon}), gap


def _old_listing(missing: Sequence[str]) -> ListingError:
    msg = f"The source does not list {', '.join(missing)}, and its partitions never go: this is an old listing"
    todo = "It is listed again. If this lasts, check that all brokers are up and that the topic was not made again."
    return ListingError(msg, left="The position is unchanged; nothing was read.", todo=todo)
