"""Partitions by name, and when they end."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from urllib.parse import quote
from zoneinfo import ZoneInfo

from lading.model.notices import PartitionField, PartitionTime

NULL_NAME = "__HIVE_DEFAULT_PARTITION__"
_LONGEST, _BEGIN = 200, 100
"""Letters of a name, and how many are left of a longer one."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FINEST = ("hour", "day", "days", "date", "month", "year")
"""Fields that are times by themselves; the finest one says when a partition ends."""
_JAVA = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def partition_name(fields: Sequence[PartitionField], values: Mapping[str, str | None]) -> str:
    """`dt=2026-01-01/hh=03`, as folders are named; empty for a table without partitions.

    A value can be any text, and the name is in bills, keys and the names of files: a long one is cut, and has a digest
    instead, behind a `!` that no other name has.
    """
    name = "/".join(
        f"{quote(field.name, safe='')}={_quoted(_shown(field, values.get(field.name)))}" for field in fields
    )
    if len(name) <= _LONGEST:
        return name
    begin = re.sub(r"%[0-9A-F]?$", "", name[:_BEGIN])
    return f"{begin}!{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def _quoted(text: str | None) -> str:
    return NULL_NAME if text is None else quote(text, safe="")


def _shown(field: PartitionField, value: str | None) -> str | None:
    if value is None or field.form in ("text", "date"):
        return value
    found = json.loads(value)
    match field.form:
        case "json":
            return found if isinstance(found, str) else value
        case "micros":
            return (_EPOCH + timedelta(microseconds=found)).strftime("%Y-%m-%dT%H:%M:%S")
        case "hour":
            return (_EPOCH + timedelta(hours=found)).strftime("%Y-%m-%d-%H")
        case "month":
            return _month(found).strftime("%Y-%m")
        case "year":
            return str(1970 + int(found))
    return (_EPOCH + timedelta(days=found)).strftime("%Y-%m-%d")


def _month(number: int) -> datetime:
    return datetime(1970 + number // 12, number % 12 + 1, 1, tzinfo=UTC)


def is_time(fields: Sequence[PartitionField]) -> bool:
    """Whether one of the fields is a time by itself."""
    return any(field.form in _FINEST for field in fields)


def names_in(pattern: str) -> list[str]:
    """The columns that a pattern names."""
    return re.findall(r"\$(\w+)", pattern)


def python_form(text: str) -> str | None:
    """`yyyy-MM-dd HH:mm:ss` for strptime; None when it has letters that are none of these."""
    form = re.sub(r"yyyy|MM|dd|HH|mm|ss", lambda found: _JAVA[found[0]], text.replace("%", "%%"))
    return None if re.search(r"[A-Za-z]", re.sub(r"%[YmdHMS]|'T'", "", form)) else form.replace("'T'", "T")


def ends_us(fields: Sequence[PartitionField], values: Mapping[str, str | None], rule: PartitionTime) -> int | None:
    """When a partition ends, in microseconds since 1970; None: its values are no time."""
    try:
        end = _end_by_pattern(fields, values, rule) if rule.pattern else _end_of_finest(fields, values, rule.zone)
    except (ValueError, OverflowError):
        return None
    return None if end is None else round((end - _EPOCH) / timedelta(microseconds=1))


def _end_by_pattern(
    fields: Sequence[PartitionField], values: Mapping[str, str | None], rule: PartitionTime
) -> datetime | None:
    shown = {field.name: _shown(field, values[field.name]) for field in fields}
    if any(shown[name] is None for name in names_in(rule.pattern)):
        return None
    text = re.sub(r"\$(\w+)", lambda found: str(shown[found[1]]), rule.pattern)
    start = datetime.strptime(text, rule.form).replace(tzinfo=ZoneInfo(rule.zone))
    # In local time: a day is one also when the clocks change.
    return (start + timedelta(microseconds=rule.interval_us)).astimezone(UTC)


def _end_of_finest(fields: Sequence[PartitionField], values: Mapping[str, str | None], zone: str) -> datetime | None:
    found = next((field for form in _FINEST for field in fields if field.form == form), None)
    value = values[found.name] if found is not None else None
    if found is None or value is None:
        return None
    if found.form == "date":
        start = datetime.combine(date.fromisoformat(value), datetime.min.time(), tzinfo=ZoneInfo(zone))
        return (start + timedelta(days=1)).astimezone(UTC)
    number = int(json.loads(value))
    match found.form:
        case "hour":
            return _EPOCH + timedelta(hours=number + 1)
        case "month":
            return _month(number + 1)
        case "year":
            return datetime(1971 + number, 1, 1, tzinfo=UTC)
    return _EPOCH + timedelta(days=number + 1)
