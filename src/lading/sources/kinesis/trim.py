"""Whether rows that were not read yet are gone. The service has no dependable word for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from lading.errors import TrimmedError
from lading.model.positions import PartitionState
from lading.sources.kinesis.errors import trimmed
from lading.sources.kinesis.payload import arrival_or_none, known_until_or_none
from lading.sources.kinesis.peek import Peek
from lading.sources.kinesis.position import Kind, Position, from_horizon, parse_position, render_position

EDGE = timedelta(seconds=60)
"""Records that are this near to the horizon count as gone: they may be before the reader comes."""
NEAR = timedelta(minutes=10)
"""This near to the horizon the reader checks that the record before its position is still there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimSight:
    """What one round knows, the same for all shards."""

    now: datetime
    retention: timedelta
    horizon: datetime
    """What arrived before it may be gone. Later than `now - retention` after a lower retention was seen."""
    peek_oldest: Callable[[str], Peek]
    peek_record: Callable[[str, int], Peek]
    """The record with a number, or what is there in its place."""
    open_at_horizon: Callable[[], set[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a shard can be read on."""

    verify: bool = False
    """The record before the position must still be there when the reader comes."""
    oldest: Peek | None = None
    """The service no longer takes the position, and nothing is gone: all that is kept is unread. Read that."""


PLAIN = Way()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One shard and its position."""

    shard: str
    is_closed: bool
    state: PartitionState
    peek: Peek
    known_until: datetime | None = None
    """Later than what the marks say, when this process saw the shard without unread records since."""
    is_first_look: bool = False
    """Nothing is known of what happened to the stream since the position was committed."""

    @property
    def position(self) -> Position:
        return parse_position(self.state.at)


def find_way(standing: Standing, sight: TrimSight) -> Way:
    """Decide how a shard can be read on from its position.

    Raises TrimmedError when rows that were not read may be gone. What is known: `known_until`, the latest moment up
    to which every record is behind the position (arrival of the last committed record, or a moment at which the
    service said that nothing was unread, or the time that the position itself names), and the retention, which is
    read in each round.

    1. The position is inside an aggregate, and the service shows another record: gone.
    2. The service refuses the position, or answers nothing from it and stays behind by the whole retention. It took
       the position before, or the job could not have opened, so the record before it is gone. If `known_until` is
       later than the horizon, nothing else is: all that is kept is read instead. Else as 6.
    3. Nothing is known of the position, as of a number that the user gave: nothing can be told.
    4. A shard that was found after the start and never read: its rows may be gone if it is older than all that is
       kept, which the service tells (AT_TRIM_HORIZON). Then as 6.
    5. `known_until` is later than the horizon: every unread record arrived after it and is still kept. The service
       may place an iterator silently at the horizon; nothing is lost by it. Unless the retention was lowered and raised
       again while nobody looked: that trims at once, and brings nothing back. So a record that was read and must still
       be kept is asked for before what follows it is believed. Where it is gone, rows behind it may be, too.
    6. The oldest record that is kept decides. It is the one before the position or an older one: nothing is gone. It
       is a later one: the records between may be gone. There is none, and the shard is open and has caught up: it is
       idle, and that is not a loss. There is none, and the shard is closed or stuck: nobody can tell any more that
       it had been read to its end, so it may be gone.

    Not seen: rows that were written and trimmed, all of them, while no service looked for longer than the retention,
    in a shard that stayed empty afterwards; and rows that were trimmed by a retention that was lowered and raised while
    no service looked, behind a record that had itself passed the retention. While a service looks, it keeps
    `known_until` fresh in the bills, and remembers the lowest retention that it saw.
    """
    state, peek, position = standing.state, standing.peek, standing.position
    if position.sub and peek.sequence is not None and peek.sequence != position.sequence:
        raise _gone(standing, sight, "the aggregated record that it was in is gone")
    known_until = max(filter(None, (known_until_or_none(state), standing.known_until)), default=None)
    if known_until is None:
        if position.kind is Kind.BEGINNING and standing.shard in sight.open_at_horizon():
            return _ask_oldest(standing, sight, "it is older than the retention, and was never read")
        if peek.refused:
            raise _gone(standing, sight, "the stream refuses this position")
        return PLAIN
    if known_until > sight.horizon + EDGE:
        if _must_be_kept(standing, sight):
            return _ask_record(standing, sight)
        if peek.refused or (position.has_sequence and _is_stuck(peek, sight)):
            return _around(standing, sight)
        near = known_until <= sight.horizon + NEAR and position.kind is Kind.AFTER
        return Way(verify=True) if near and _is_kept(position, sight.peek_oldest(standing.shard)) else PLAIN
    kept_for = f"{sight.retention.total_seconds() / 3600:g} h"
    why = f"it was read up to {known_until.isoformat(timespec='seconds')}, and records are kept for {kept_for}"
    return _ask_oldest(standing, sight, why)


def _must_be_kept(standing: Standing, sight: TrimSight) -> bool:
    """Whether the record before the position is younger than the retention, and something depends on it.

    A shard in which nothing is unread is asked once: what is trimmed while this process looks, it sees.
    """
    arrival = arrival_or_none(standing.state)
    if standing.position.kind is not Kind.AFTER or arrival is None or arrival <= sight.horizon + EDGE:
        return False
    return standing.is_first_look or standing.is_closed or not standing.peek.is_caught_up


def _ask_record(standing: Standing, sight: TrimSight) -> Way:
    number = standing.position.sequence
    found = sight.peek_record(standing.shard, number)
    if found.sequence == number:
        return Way(verify=True)
    if found.sequence is None and not (found.refused or found.ended or found.is_caught_up or _is_stuck(found, sight)):
        return PLAIN  # The shard had no capacity for the question.
    why = (
        "the last record that was read is gone, and is younger than the retention of "
        f"{sight.retention.total_seconds() / 3600:g} h: the retention was lowered and raised again"
    )
    raise _gone(standing, sight, why)


def _around(standing: Standing, sight: TrimSight) -> Way:
    oldest = sight.peek_oldest(standing.shard)
    if _is_stuck(oldest, sight) or _is_kept(standing.position, oldest):
        raise _gone(standing, sight, "the stream does not take this position, and nobody can tell why")
    return Way(oldest=oldest)


def _ask_oldest(standing: Standing, sight: TrimSight, why: str) -> Way:
    oldest = sight.peek_oldest(standing.shard)
    if oldest.sequence is None:
        if standing.is_closed or oldest.ended or _is_stuck(oldest, sight) or _is_stuck(standing.peek, sight):
            raise _gone(standing, sight, why)
        return Way(oldest=oldest) if standing.peek.refused else PLAIN
    if _is_kept(standing.position, oldest) and not standing.peek.refused:
        return Way(verify=standing.position.kind is Kind.AFTER)
    raise _gone(standing, sight, why)


def _is_kept(position: Position, oldest: Peek) -> bool:
    """Whether what is before the position is still there, so that nothing behind it can be gone."""
    if position.has_sequence:
        return oldest.sequence is not None and oldest.sequence <= position.sequence
    return position.time is not None and oldest.arrival is not None and oldest.arrival <= position.time


def _is_stuck(peek: Peek, sight: TrimSight) -> bool:
    behind = timedelta(milliseconds=peek.behind_ms or 0)
    return peek.sequence is None and not peek.ended and behind >= sight.retention


def _gone(standing: Standing, sight: TrimSight, why: str) -> TrimmedError:
    return trimmed(standing.shard, standing.state.at, why, render_position(from_horizon(sight.now)))
