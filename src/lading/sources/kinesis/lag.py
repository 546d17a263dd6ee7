"""How far a job is behind its stream."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from lading.model.positions import Positions, passed_partitions
from lading.sources.kinesis.listing import StreamView
from lading.sources.kinesis.peek import Peek
from lading.sources.kinesis.shards import open_shards
from lading.sources.streams import StreamSight

_MS = timedelta(milliseconds=1)


def stream_sight(view: StreamView, positions: Positions, peeks: Mapping[str, Peek], *, now: datetime) -> StreamSight:
    """Numbers by the names that SHOW gives them. A shard that is gone has a lag that nobody knows."""
    lag = {
        name: lag_ms_or_none(peeks[name], now) if name in peeks else None
        for name, state in positions.partitions.items()
        if not state.finished
    }
    known = [value for value in lag.values() if value is not None]
    still_open = open_shards(view.shards)
    tracked = sorted((set(positions.partitions) & set(view.shards)) - passed_partitions(positions))
    opened = tuple(name for name in tracked if name in still_open)
    closed = tuple(name for name in tracked if name not in still_open)
    left = [seconds for peek in peeks.values() if (seconds := _seconds_left_or_none(peek, view, now)) is not None]
    return StreamSight(
        lag=lag,
        facts={
            "openShardNum": len(opened),
            "closedShardNum": len(closed),
            "trackedShardNum": len(lag),
            "cachedMillisBehindLatestShardNum": len(known),
            "totalMillisBehindLatest": sum(known),
            "maxMillisBehindLatest": max(known, default=0),
        },
        seconds_to_trim=min(left, default=None),
        open_partitions=opened,
        closed_partitions=closed,
    )


def lag_ms_or_none(peek: Peek, now: datetime) -> int | None:
    """Age of the oldest unread record; 0 when nothing is unread. None: not known.

    The end of a closed shard may be any time behind, and there is nothing left in it: 0.
    """
    if peek.refused or peek.gone:
        return None
    if peek.sequence is None:
        return 0 if peek.ended else peek.behind_ms
    age = 0 if peek.arrival is None else (now - peek.arrival) // _MS
    return max(1, age, peek.behind_ms or 0)


def _seconds_left_or_none(peek: Peek, view: StreamView, now: datetime) -> float | None:
    lag_ms = lag_ms_or_none(peek, now)
    if not lag_ms:
        return None
    return max(0.0, (view.retention - lag_ms * _MS).total_seconds())
