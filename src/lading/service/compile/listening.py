"""When partitions of a load are done: from its properties and its table to a rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from lading.commit.partitions import is_time, names_in, python_form
from lading.errors import SqlError
from lading.model.load import ListeningSpec, LoadSpec
from lading.model.notices import ListenRule, PartitionField, PartitionTime

_MICROS = 1_000_000
_PATTERN, _FORMATTER = "partition.timestamp_pattern", "partition.timestamp_formatter"


def listen_rule(load: LoadSpec, fields: Sequence[PartitionField]) -> ListenRule | None:
    """When partitions are done, and who is told; None: nobody. Raises SqlError for a table that cannot tell it."""
    spec = load.listening
    if spec is None:
        return None
    is_join = load.stream_join is not None
    if (load.window is not None or is_join) and load.intake.ingestion_mode == "ONCE":
        has, last = ("a join of two streams", "rows without a match") if is_join else ("windows", "windows")
        msg = (
            f"s3.ingestion_mode is ONCE, the job has {has}, and it has listeners: it ends with its source, before the "
            f"last {last} are written, so that nobody could be told of their partitions"
        )
        todo = "Leave the listeners out, or load continuously."
        raise SqlError(msg, property="s3.ingestion_mode", todo=todo)
    return ListenRule(
        listeners=tuple(listener.name for listener in spec.listeners),
        fields=tuple(fields),
        idle_s=spec.idle_s or 0.0,
        time=_time(spec, fields, is_session=load.window is not None and load.window.is_session)
        if spec.mode == "watermark"
        else None,
        hold_us=_hold_us(load),
    )


def _hold_us(load: LoadSpec) -> int | None:
    """How far behind the watermark results may be that are still to come; None: none are."""
    if load.window is not None:
        return load.window.size_us
    join = load.stream_join
    if join is None:
        return None
    # A result may be about either of its rows: about one that was kept, until it is forgotten.
    return max(0, -join.low_us) + max(0, join.high_us) + 1


def _time(spec: ListeningSpec, fields: Sequence[PartitionField], *, is_session: bool) -> PartitionTime:
    if is_session:
        msg = "partition.mark_done_mode is watermark, and a session that began in a partition can last for any time"
        raise SqlError(msg, property="partition.mark_done_mode", todo="Use process-time.")
    zone = spec.time_zone or "UTC"
    if not fields:
        msg = "partition.mark_done_mode is watermark, and the table has no partitions that could end"
        raise SqlError(msg, property="partition.mark_done_mode", todo="Use process-time.")
    if not spec.formatter and not spec.pattern:
        if not is_time(fields):
            names = ", ".join(field.name for field in fields)
            msg = (
                f"partition.mark_done_mode is watermark, and the table is partitioned by {names}: none of it is a time"
            )
            todo = f"Say how texts become times with {_FORMATTER} and partition.time_interval, or use process-time."
            raise SqlError(msg, property="partition.mark_done_mode", todo=todo)
        return PartitionTime(zone=zone)
    return _time_of_texts(spec, fields, zone)


def _time_of_texts(spec: ListeningSpec, fields: Sequence[PartitionField], zone: str) -> PartitionTime:
    pattern = spec.pattern or f"${fields[0].name}"
    known = {field.name for field in fields}
    unknown = [name for name in names_in(pattern) if name not in known]
    if unknown or not names_in(pattern):
        msg = f"{_PATTERN} is {pattern!r}, and names {', '.join(unknown) or 'nothing'} that the table is partitioned by"
        raise SqlError(msg, property=_PATTERN, todo=f"It is partitioned by: {', '.join(sorted(known))}.")
    form = python_form(spec.formatter or "yyyy-MM-dd HH:mm:ss")
    if form is None:
        msg = f"{_FORMATTER} is {spec.formatter!r}, and has other letters than yyyy, MM, dd, HH, mm and ss"
        raise SqlError(msg, property=_FORMATTER, todo="Write for example yyyy-MM-dd.")
    _check_form(spec.formatter, form)
    if spec.interval_s <= 0:
        msg = "partition.time_interval is missing: texts do not say how long a partition is"
        raise SqlError(msg, property="partition.time_interval", todo='Add it, for example "1 day".')
    return PartitionTime(pattern=pattern, form=form, interval_us=round(spec.interval_s * _MICROS), zone=zone)


def _check_form(formatter: str, form: str) -> None:
    """Read one time by it: a part that is there twice, for example, would fail in each batch."""
    try:
        datetime.strptime(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).strftime(form), form).replace(tzinfo=UTC)
    except (ValueError, re.error) as error:
        msg = f"{_FORMATTER} is {formatter!r}, and no time can be read by it"
        raise SqlError(msg, property=_FORMATTER, todo="Name each part once: for example yyyy-MM-dd.") from error
