"""Where a load begins: the words for positions that a user may write."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from datetime import timezone as fixed_zone
from zoneinfo import ZoneInfo

from lading.sql.properties.values import refuse

TRIM_HORIZON = "TRIM_HORIZON"
LATEST = "LATEST"
OFFSET_BEGINNING = "OFFSET_BEGINNING"
OFFSET_END = "OFFSET_END"
_LOCAL_TIME = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}")
_AT = re.compile(r"AT_TIMESTAMP\s*\(\s*(.+?)\s*\)", re.IGNORECASE)
_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})")
SHARD_END = "SHARD_END"
"""A shard that was read to its end: nothing of it is read again."""
_PLACE = re.compile(r"AT \d+( \d+)?|AFTER \d+")


PARTITION_END = "PARTITION_END"
"""A partition that was given up: nothing of it is read."""


def kafka_start(name: str, text: str) -> str:
    """An offset, OFFSET_BEGINNING, OFFSET_END, or a time `yyyy-MM-dd HH:mm:ss` in the job's time zone.

    SHOW CREATE also writes PARTITION_END.
    """
    given = text.strip()
    if given.upper() in (OFFSET_BEGINNING, OFFSET_END, PARTITION_END):
        return given.upper()
    if given.isascii() and given.isdigit():
        return str(int(given))
    if _is_time(given):
        return given
    msg = f"{name} must be an integer or a date time, OFFSET_BEGINNING or OFFSET_END, and it is {text!r}"
    raise refuse(msg, property=name, value=text)


def kinesis_start(name: str, text: str) -> str:
    """TRIM_HORIZON, LATEST, a sequence number to begin with (that record is loaded), or AT_TIMESTAMP(time).

    The time is `yyyy-MM-dd HH:mm:ss` in the job's time zone, or ISO 8601 with a zone; it may stand alone. SHOW CREATE
    also writes SHARD_END, `AFTER 4954…`, `AT 4954…`, which is the number alone, and `AT 4954… 3` inside an aggregate.
    """
    given = " ".join(text.split())
    if given.upper() in (TRIM_HORIZON, LATEST, SHARD_END):
        return given.upper()
    if given.isascii() and (given.isdigit() or _PLACE.fullmatch(given.upper())):
        return given.upper()
    match = _AT.fullmatch(given)
    moment = match[1].strip("'\"") if match else given
    if _is_time(moment):
        return f"AT_TIMESTAMP({moment})"
    msg = f"{name} must be TRIM_HORIZON, LATEST, or a valid sequence number, or AT_TIMESTAMP(…), and it is {text!r}"
    raise refuse(msg, property=name, value=text)


def _is_time(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    return _LOCAL_TIME.fullmatch(text) is not None or moment.tzinfo is not None


def start_time_or_none(start: str, timezone: str) -> datetime | None:
    """The moment that a start means, in UTC; None when it is not a time. `timezone` is that of the job."""
    match = _AT.fullmatch(start)
    text = match[1] if match else start
    if not _is_time(text):
        return None
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=_zone(timezone))).astimezone(UTC)


def _zone(name: str) -> tzinfo:
    if match := _OFFSET.fullmatch(name):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return fixed_zone(-offset if match[1] == "-" else offset)
    return ZoneInfo(name or "UTC")


def read_discovery(name: str, text: str, has_names: bool) -> str:
    """ON, OFF or nothing. Without it, partitions that are named are the only ones that are read."""
    given = text.strip().upper()
    if given not in ("", "ON", "OFF") or (given == "OFF" and not has_names):
        msg = f"{name} should be ON, or OFF where partitions are named, and it is {text!r}"
        raise refuse(msg, property=name, value=text)
    return given
