"""Where a job begins in a topic, as text that the service hands over and `open` makes concrete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lading.errors import SqlError

OFFSET_BEGINNING = "OFFSET_BEGINNING"
OFFSET_END = "OFFSET_END"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Each place is an offset, OFFSET_BEGINNING, OFFSET_END or a moment in ISO 8601 with a zone."""

    default: str = OFFSET_END
    partitions: Mapping[int, str] = field(default_factory=dict)


def render_start(default: str = OFFSET_END, partitions: Mapping[int, str] | None = None) -> str:
    """The start as text: the place of every partition, and of those that have one of their own."""
    own = {str(number): place for number, place in sorted((partitions or {}).items())}
    return json.dumps({"default": default, "partitions": own}, sort_keys=True)


def parse_start(text: str) -> Start:
    """The start that `render_start` wrote. Empty text: the end of all partitions."""
    told = json.loads(text) if text else {}
    start = Start(
        default=told.get("default", OFFSET_END),
        partitions={int(number): place for number, place in told.get("partitions", {}).items()},
    )
    for place in (start.default, *start.partitions.values()):
        if place not in (OFFSET_BEGINNING, OFFSET_END) and offset_or_none(place) is None:
            moment_of(place)
    return start


def offset_or_none(place: str) -> int | None:
    """The offset that a place says; None when it is a word or a moment."""
    return int(place) if place.isascii() and place.isdigit() else None


def moment_of(place: str) -> datetime:
    """The moment that a place says."""
    try:
        moment = datetime.fromisoformat(place)
    except ValueError as error:
        raise _refuse(place) from error
    if moment.tzinfo is None:
        raise _refuse(place)
    return moment


def _refuse(place: str) -> SqlError:
    msg = f"kafka_offsets must be an integer or a date time, OFFSET_BEGINNING or OFFSET_END, and it is {place!r}"
    return SqlError(msg, todo="Write one of these.", value=place)
