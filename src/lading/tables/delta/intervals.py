"""Durations as Spark writes them in table properties: `interval 30 days`, `52 weeks 1 day`, `INTERVAL 1 DAY`."""

from __future__ import annotations

import re
from datetime import timedelta

_PART = re.compile(r"([+-]?\d+)\s+([a-z]+)")
_UNITS = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}


def parse_interval(text: str) -> timedelta | None:
    """The duration; None when it is not understood.

    Months and years are not: they have no fixed length, and Delta refuses them as well.
    """
    plain = " ".join(text.lower().replace("'", " ").split()).removeprefix("interval ").strip()
    if _PART.sub("", plain).strip() or not plain:
        return None
    total = timedelta(0)
    for number, unit in _PART.findall(plain):
        length = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
        if length is None:
            return None
        try:
            total += int(number) * length
        except OverflowError:
            return timedelta.max
    return total if total >= timedelta(0) else None
