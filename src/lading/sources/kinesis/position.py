"""Positions in a shard, and their texts. Always next to read.

    ""                    the first record the shard ever had: a shard that was found after the start
    TRIM_HORIZON 2026-…   the oldest record that is kept, whichever that is: a start, or behind a gap. The moment is
                          when that was said: what arrived later must not be missing
    TIME 2026-01-01T…     the first record that arrived then or later
    AT 4954…              the record with this number; `AT 4954… 3` is the fourth record inside an aggregate
    AFTER 4954…           the record after the one with this number

Numbers of one shard compare as integers; those of two shards do not compare at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from lading.errors import ConfigError

_TEXT = re.compile(r"(?P<kind>AT|AFTER) (?P<sequence>\d+)(?: (?P<sub>\d+))?")
_TIME, _HORIZON = "TIME ", "TRIM_HORIZON "


class Kind(Enum):
    """What a position says."""

    BEGINNING = ""
    HORIZON = "TRIM_HORIZON"
    TIME = "TIME"
    AT = "AT"
    AFTER = "AFTER"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where to read next."""

    kind: Kind
    sequence: int = 0
    sub: int = 0
    """For AT: how many records inside this aggregate are behind."""
    time: datetime | None = None

    @property
    def has_sequence(self) -> bool:
        return self.kind in (Kind.AT, Kind.AFTER)

    def iterator_arguments(self) -> dict[str, Any]:
        """For GetShardIterator."""
        if self.kind is Kind.TIME:
            return {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": self.time}
        if self.has_sequence:
            return {
                "ShardIteratorType": f"{self.kind.value}_SEQUENCE_NUMBER",
                "StartingSequenceNumber": str(self.sequence),
            }
        return {"ShardIteratorType": "TRIM_HORIZON"}


BEGINNING = Position(kind=Kind.BEGINNING)
HORIZON = Position(kind=Kind.HORIZON)


def from_horizon(moment: datetime) -> Position:
    """All that is kept, as it was said at a moment."""
    return Position(kind=Kind.HORIZON, time=moment.astimezone(UTC))


def at_time(moment: datetime) -> Position:
    """From a moment on."""
    return Position(kind=Kind.TIME, time=moment.astimezone(UTC))


def at_sequence(sequence: int, sub: int = 0) -> Position:
    """From a record on, with it."""
    return Position(kind=Kind.AT, sequence=sequence, sub=sub)


def after_sequence(sequence: int) -> Position:
    """From behind a record on."""
    return Position(kind=Kind.AFTER, sequence=sequence)


def render_position(position: Position) -> str:
    """The text that goes into bills."""
    if position.time is not None:
        return f"{position.kind.value} {position.time.isoformat(timespec='milliseconds')}"
    if position.has_sequence:
        inside = f" {position.sub}" if position.sub else ""
        return f"{position.kind.value} {position.sequence}{inside}"
    return position.kind.value


def parse_position(text: str) -> Position:
    """The opposite of `render_position`."""
    if text in ("", Kind.HORIZON.value):
        return Position(kind=Kind(text))
    if text.startswith(_HORIZON):
        return replace(parse_position(_TIME + text.removeprefix(_HORIZON)), kind=Kind.HORIZON)
    if match := _TEXT.fullmatch(text):
        return Position(kind=Kind(match["kind"]), sequence=int(match["sequence"]), sub=int(match["sub"] or 0))
    if text.startswith(_TIME):
        try:
            return at_time(datetime.fromisoformat(text.removeprefix(_TIME)))
        except ValueError:
            pass
    msg = f"{text!r} is not a position in a shard"
    raise ConfigError(msg, left="Nothing was read.", todo='Write "AT <sequence number>" or "TRIM_HORIZON".')
