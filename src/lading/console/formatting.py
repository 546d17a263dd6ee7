"""Numbers, times and states as people read them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from lading.jobs.reasons import RECOVERED
from lading.service.views.records import JobView, LagView
from lading.status.lag import LagUnit

Tone = Literal["good", "warn", "bad", "idle"]
"""How a state looks. It never stands without its word."""

NOTHING = "—"

_TONES: Mapping[str, Tone] = {
    "RUNNING": "good",
    "FINISHED": "good",
    "PENDING": "idle",
    "NEED_SCHEDULE": "idle",
    "STOPPED": "idle",
    "PAUSED": "warn",
    "CANCELLED": "bad",
}


def tone_of(job: JobView) -> Tone:
    """A job that stands still because something is wrong is bad, not only paused."""
    if job.state == "PAUSED" and job.reason is not None and job.reason.code != "MANUAL_PAUSE_ERR":
        return "bad"
    return _TONES.get(job.state, "idle")


def state_note(job: JobView) -> str:
    """A few words to stand beside the state."""
    if job.state == "PAUSED" and job.reason is not None:
        if job.reason.code == "MANUAL_PAUSE_ERR":
            return "recovered" if job.reason.message.startswith(RECOVERED) else "paused by a user"
        return "needs attention" if job.reason.needs_attention else "resumes by itself"
    if job.failures_in_a_row:
        return f"{count(job.failures_in_a_row)} failed in a row"
    return "batch on its way" if job.is_busy else ""


def count(number: float | None) -> str:
    """With thousands separators."""
    return NOTHING if number is None else f"{number:,.0f}"


def rate(per_s: float) -> str:
    """Rows in a second: exact while small, whole when large."""
    if 0 < per_s < 10:
        return f"{per_s:,.1f}" if per_s >= 0.05 else "<0.1"
    return f"{per_s:,.0f}"


def size(number: float | None) -> str:
    """Bytes."""
    if number is None:
        return NOTHING
    if round(number) < 1024:
        return f"{number:,.0f} B"
    value, units = float(number) / 1024, ["KiB", "MiB", "GiB", "TiB"]
    while round(value, 1) >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:,.1f} {units[0]}"


def took(seconds: float | None) -> str:
    """How long something took."""
    if seconds is None:
        return NOTHING
    if round(seconds * 1000) < 1000:
        return f"{seconds * 1000:,.0f} ms"
    if round(seconds, 1) < 120:
        return f"{seconds:,.1f} s"
    return spell(seconds)


def spell(seconds: float) -> str:
    """A long time in its two largest units."""
    whole = int(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86_400
    if minutes < 120:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes % 60} min"
    return f"{days} d {hours % 24} h"


def lag(sight: LagView | None) -> str:
    """How far behind, with its unit."""
    if sight is None or sight.behind is None:
        return NOTHING
    if sight.unit is LagUnit.MILLISECONDS:
        return took(sight.behind / 1000)
    return f"{sight.behind:,} {plural(sight.behind, sight.unit.value)}"


def plural(number: int, many: str) -> str:
    """The word without its s for one."""
    return many.removesuffix("s") if number == 1 else many


def millis(at: datetime) -> int:
    """For browsers."""
    return int(at.timestamp() * 1000)


def place(at: str) -> str:
    """A position; empty is the beginning."""
    return at or "the beginning"


def shorten(text: str, most: int = 160) -> str:
    """One line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
