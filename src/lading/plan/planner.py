"""From committed positions to the splits of the next batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from lading.clock import Clock
from lading.errors import TrimmedError
from lading.model.batch import BatchPlan, Gap, Limits, Split
from lading.model.positions import (
    Listing,
    PartitionState,
    Positions,
    merge_listing,
    move_positions,
    ready_partitions,
)


class Source(Protocol):
    """The driver's side of a source. Cheap: it lists and counts, it does not read rows.

    Laws: the same range gives the same rows for ever, or a loud error. An error is never an empty answer.
    `list_partitions` returns every partition that still holds rows or can still get some, or raises.
    Not promised: that a listing is newer than the one before.
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


class Planner:
    """Plans batches of one job from one source."""

    def __init__(self, source: Source, clock: Clock, *, on_data_loss: str = "PAUSE") -> None:
        self._source = source
        self._clock = clock
        self._continues = on_data_loss.upper() == "CONTINUE"

    def open(self, start: str) -> Positions:
        """Concrete positions for the opening bill."""
        return self._source.open(start)

    def plan(self, base: Positions, limits: Limits) -> BatchPlan:
        """Splits of the next batch; none when there is nothing to read. Nothing durable happens."""
        merged = merge_listing(base, self._source.list_partitions())
        gaps: tuple[Gap, ...] = ()
        while True:
            try:
                splits = self._source.plan(ready_partitions(base, merged), limits)
            except TrimmedError as error:
                if not self._continues:
                    raise
                merged, gap = self._skip_gap(merged, error)
                gaps = (*gaps, gap)
            else:
                return BatchPlan(positions=merged, splits=splits, gaps=gaps)

    def _skip_gap(self, positions: Positions, error: TrimmedError) -> tuple[Positions, Gap]:
        partition, horizon = error.facts["partition"], error.facts["horizon"]
        state = positions.partitions[partition]
        gap = Gap(partition=partition, start=state.at, end=horizon, reason=error.what, at=self._clock.now())
        moved = move_positions(positions, {partition: horizon})
        return moved, gap
