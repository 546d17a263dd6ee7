"""Numbers, times and states as people read them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from lading.service.views.records import Health, JobView, LagView
from lading.status.lag import LagUnit

Tone = Literal["good", "warn", "bad", "idle"]
"""How a state looks. It never stands without its word."""

NOTHING = "—"

TONES: Mapping[Health, Tone] = {
    Health.NEEDS_REVIEW: "bad",
    Health.FAILING: "bad",
    Health.LATE_FILES: "warn",
    Health.CATCHING_UP: "warn",
    Health.PAUSED: "idle",
    Health.HEALTHY: "good",
    Health.ENDED: "idle",
}


def tone_of(job: JobView) -> Tone:
    """As the job is doing, whatever its state."""
    return TONES[job.health.state]


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
