"""What is worth telling people of a job, from what they were told and what is known now. Pure.

A pause is one story from its beginning to the commit that ends it: a job that fails, is resumed by itself and fails
again is told of once, and once more when nobody but a person can help, or when it has done well again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from lading.jobs.reasons import Reason, ReasonCode
from lading.jobs.record import JobName, JobRecord, JobState
from lading.status.lag import Lag, LagUnit

LATE_EVERY = timedelta(hours=1)
"""More late files are told of so often at most."""
CALM = 2
"""A job has caught up when it is behind by less than this part of the limit."""

Columns = tuple[tuple[str, str], ...]
"""Names and types."""


class EventKind(Enum):
    """What can be told; the words of LADING_NOTIFY_ON."""

    PAUSED = "paused"
    RESUMED = "resumed"
    LATE_FILES = "late_files"
    LAG = "lag"
    SCHEMA_CHANGE = "schema_change"


class Pause(Enum):
    """Of which kind of pause people were told."""

    NONE = ""
    TRIED_AGAIN = "tried again"
    NEEDS_A_PERSON = "not by itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """One thing that people are told."""

    number: int
    """1, 2, 3, … in the life of the job: with it a receiver knows an event that comes twice."""
    kind: EventKind
    text: str
    """One sentence."""
    value: str
    """What is wrong, by itself: a reason, a number, a name."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LagLimits:
    """From when on a job is behind; 0: never."""

    seconds: int = 0
    records: int = 0
    files: int = 0

    def of(self, unit: LagUnit) -> int:
        """In the unit of the lag."""
        limits = {
            LagUnit.MILLISECONDS: self.seconds * 1000,
            LagUnit.RECORDS: self.records,
            LagUnit.FILES: self.files,
        }
        return limits[unit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What people were told of a job. Kept in the store."""

    number: int = 0
    """Of the last event."""
    pause: Pause = Pause.NONE
    paused_at: datetime | None = None
    late_files: int = 0
    late_at: datetime | None = None
    is_behind: bool = False
    columns: Columns | None = None
    """None: nobody has looked yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is known of a job now."""

    record: JobRecord
    now: datetime
    late_files: int | None = None
    """None: nobody has looked."""
    remark: str = ""
    lag: Lag | None = None
    columns: Columns | None = None
    was_resumed_by: str = ""
    """The person who resumed the job since it was paused; empty: nobody."""
    raised: tuple[tuple[EventKind, str, str], ...] = field(default=())
    """What others found out: kind, sentence, value."""


Found = tuple[EventKind, str, str]


def derive(told: Told, sight: Sight, limits: LagLimits, wanted: Iterable[EventKind]) -> tuple[Told, list[JobEvent]]:
    """What is to be told now, and what will have been told then."""
    found: list[Found] = list(sight.raised)
    after = told
    for look in (_pause, _late, _columns):
        after, more = look(after, sight)
        found += more
    after, more = _lag(after, sight, limits)
    found += more
    kept = [each for each in found if each[0] in set(wanted)]
    events = [
        JobEvent(number=told.number + place, kind=kind, text=text, value=value, at=sight.now)
        for place, (kind, text, value) in enumerate(kept, 1)
    ]
    return replace(after, number=told.number + len(events)), events


def _pause(told: Told, sight: Sight) -> tuple[Told, list[Found]]:
    record, name = sight.record, sight.record.full_name
    if record.state is JobState.CANCELLED and record.reason is not None:
        if told.pause is Pause.NEEDS_A_PERSON and told.paused_at == record.ended_at:
            return told, []
        message = record.reason.message
        ended = replace(told, pause=Pause.NEEDS_A_PERSON, paused_at=record.ended_at)
        return ended, [(EventKind.PAUSED, f"Job {name} was cancelled: {_clause(message)}.", message)]
    if record.state is not JobState.PAUSED or record.reason is None:
        return _going_on(told, sight)
    kind = Pause.NEEDS_A_PERSON if record.reason.needs_attention else Pause.TRIED_AGAIN
    is_same = told.paused_at == record.paused_at or (kind is Pause.TRIED_AGAIN and record.auto_resume.tries > 0)
    if is_same and told.pause in (kind, Pause.NEEDS_A_PERSON):
        return told, []
    after = replace(told, pause=kind, paused_at=record.paused_at)
    return after, [(EventKind.PAUSED, _paused_text(name, record.reason), record.reason.message)]


def _paused_text(name: JobName, reason: Reason) -> str:
    said = _clause(reason.message)
    if reason.code is ReasonCode.MANUAL_PAUSE_ERR:
        return f"Job {name} was paused by a person: {said}."
    if reason.needs_attention:
        return f"Job {name} is paused until somebody resumes it: {said}."
    return f"Job {name} is paused and will be tried again by itself: {said}."


def _going_on(told: Told, sight: Sight) -> tuple[Told, list[Found]]:
    record = sight.record
    if told.pause is Pause.NONE:
        return told, []
    if told.pause is Pause.TRIED_AGAIN and record.auto_resume.tries and not record.is_final:
        return told, []  # It was resumed and has committed nothing yet: it may fail again.
    over = replace(told, pause=Pause.NONE, paused_at=None)
    if told.pause is Pause.NEEDS_A_PERSON or record.is_final or sight.was_resumed_by:
        return over, []
    since = f", paused since {told.paused_at:%Y-%m-%d %H:%M:%S} UTC," if told.paused_at else ""
    return over, [(EventKind.RESUMED, f"Job {record.full_name}{since} goes on by itself.", record.state.value)]


def _late(told: Told, sight: Sight) -> tuple[Told, list[Found]]:
    count = sight.late_files
    if count is None or count == told.late_files:
        return told, []
    if count < told.late_files:
        return replace(told, late_files=count), []
    if told.late_at is not None and timedelta(0) <= sight.now - told.late_at < LATE_EVERY:
        return told, []
    after = replace(told, late_files=count, late_at=sight.now)
    files = "1 late file" if count == 1 else f"{count:,} late files"
    text = f"Job {sight.record.full_name} has {files} that it does not load: {_clause(sight.remark)}."
    return after, [(EventKind.LATE_FILES, text, str(count))]


def _lag(told: Told, sight: Sight, limits: LagLimits) -> tuple[Told, list[Found]]:
    lag = sight.lag
    if lag is None or (behind := lag.behind) is None:
        return told, []
    limit = limits.of(lag.unit)
    if not limit or behind * CALM < limit:
        return replace(told, is_behind=False), []
    if told.is_behind or behind < limit:
        return told, []
    shown = _amount(behind, lag.unit)
    text = f"Job {sight.record.full_name} is {shown} behind its source, more than {_amount(limit, lag.unit)}."
    return replace(told, is_behind=True), [(EventKind.LAG, text, shown)]


def _amount(behind: int, unit: LagUnit) -> str:
    if unit is LagUnit.MILLISECONDS:
        return f"{behind / 1000:,.0f} seconds"
    return f"{behind:,} {unit.value}"


def _columns(told: Told, sight: Sight) -> tuple[Told, list[Found]]:
    if sight.columns is None or sight.columns == told.columns:
        return told, []
    after = replace(told, columns=sight.columns)
    changes = describe_changes(told.columns, sight.columns) if told.columns is not None else ""
    if not changes:
        return after, []
    record = sight.record
    text = f"The columns of {record.target}, which job {record.full_name} loads, have changed: {changes}."
    return after, [(EventKind.SCHEMA_CHANGE, text, changes)]


def describe_changes(before: Columns, after: Columns) -> str:
    """`amount (double) was added`; empty when only the order is another."""
    old, new = dict(before), dict(after)
    added = [f"{name} ({kind}) was added" for name, kind in after if name not in old]
    gone = [f"{name} ({kind}) is gone" for name, kind in before if name not in new]
    changed = [f"{name} is {kind} and was {old[name]}" for name, kind in after if name in old and old[name] != kind]
    return ", ".join([*added, *gone, *changed])


def _clause(message: str) -> str:
    """The text of others as the end of a sentence: one line, no full stop."""
    return " ".join(message.split()).rstrip(".") or "no reason was given"
