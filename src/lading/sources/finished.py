"""A stream that goes on where another job was: partitions that were finished stay finished."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lading.model.batch import Split
from lading.model.positions import Listing, PartitionState, Positions
from lading.sources.kind import StreamSource
from lading.sources.streams import StreamSight


def with_finished(source: StreamSource, finished: Sequence[str]) -> StreamSource:
    """The stream, of which these partitions count as finished from the start."""
    return _WithFinished(source, finished) if finished else source


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
