"""Remarks beside a position that a restart needs, and the text inside a split."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lading.model.positions import PartitionState
from lading.sources.kinesis.position import parse_position

ARRIVAL, CURRENT, LAG = "arrival", "current", "lag_ms"
"""When the last record arrived; when nothing was unread; how far behind the last read ended."""


def render_marks(*, arrival: datetime | None, current: datetime | None, lag_ms: int | None) -> dict[str, str]:
    """Only what is known, but for the lag: an old one must not outlive a new position."""
    marks = {LAG: "" if lag_ms is None else str(lag_ms)}
    if arrival is not None:
        marks[ARRIVAL] = arrival.astimezone(UTC).isoformat(timespec="milliseconds")
    if current is not None:
        marks[CURRENT] = current.astimezone(UTC).isoformat(timespec="milliseconds")
    return marks


def arrival_or_none(state: PartitionState) -> datetime | None:
    """When the last record before the position arrived, where that is known."""
    text = state.marks.get(ARRIVAL)
    return datetime.fromisoformat(text) if text else None


def known_until_or_none(state: PartitionState) -> datetime | None:
    """The latest moment of which it is known that every record up to it is behind the position."""
    times = [datetime.fromisoformat(state.marks[name]) for name in (ARRIVAL, CURRENT) if state.marks.get(name)]
    time = parse_position(state.at).time
    return max([*times, *([time] if time else [])], default=None)


def is_known_behind(state: PartitionState, retention: timedelta) -> bool:
    """The last read ended before it had caught up. Behind by all of the retention: it may be stuck, look again."""
    return timedelta(0) < timedelta(milliseconds=int(state.marks.get(LAG) or 0)) < retention


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """What the driver tells the reader of a split."""

    hash_start: int = 0
    hash_end: int = 0
    verify: bool = False
    """The record before the position must still be there: it is about to be trimmed."""
    from_oldest: bool = False
    """The record before the position is trimmed, and nothing else: what is kept is read from its beginning."""


def render_payload(payload: Payload) -> str:
    """One JSON object. Hashes have 39 digits and go as texts."""
    body = {
        "hashes": [str(payload.hash_start), str(payload.hash_end)],
        "verify": payload.verify,
        "from_oldest": payload.from_oldest,
    }
    return json.dumps(body, separators=(",", ":"))


def parse_payload(text: str) -> Payload:
    """The opposite of `render_payload`."""
    body = json.loads(text)
    start, end = body["hashes"]
    return Payload(hash_start=int(start), hash_end=int(end), verify=body["verify"], from_oldest=body["from_oldest"])
