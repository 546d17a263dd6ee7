"""Rates and plots, computed from commits. Nothing here reads a clock or a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from lading.model.tally import Tally

_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One commit, as far as rates and plots look at it."""

    at: datetime
    tally: Tally
    """What this commit added."""
    seconds: float | None = None
    """From the plan to the bill; None when that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Averages over a window."""

    window_s: float
    rows_per_s: float = 0.0
    bytes_per_s: float = 0.0
    files_per_s: float = 0.0
    """Of the source."""
    batches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LagPoint:
    """How far a job was behind at one moment, in the unit of its source."""

    at: datetime
    behind: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One interval of a plot. Its commits are those that were billed in it."""

    at: datetime
    """When the interval begins."""
    rows_per_s: float = 0.0
    errors_per_s: float = 0.0
    bytes_per_s: float = 0.0
    data_files: int = 0
    batches: int = 0
    batch_s: float | None = None
    """Mean time of its batches; None when there was none."""
    lag: float | None = None
    """The last that was seen in it; None when nobody looked."""


def measure_rates(beats: Iterable[Beat], *, now: datetime, window_s: float, since: datetime | None = None) -> Rates:
    """Average over the last `window_s` seconds, or over the time since `since` when that is shorter.

    A job that is a minute old is not shown at a fifth of its speed because the window has five.
    """
    age_s = window_s if since is None else (now - since).total_seconds()
    span_s = max(1.0, min(window_s, age_s))
    start = now - timedelta(seconds=span_s)
    recent = [beat for beat in beats if start < beat.at <= now]
    return Rates(
        window_s=span_s,
        rows_per_s=sum(beat.tally.rows.total for beat in recent) / span_s,
        bytes_per_s=sum(beat.tally.received_bytes for beat in recent) / span_s,
        files_per_s=sum(beat.tally.source_files for beat in recent) / span_s,
        batches=sum(beat.tally.commits for beat in recent),
    )


def fixed_span(now: datetime, span: timedelta, points: int) -> tuple[datetime, datetime]:
    """The time from which `plot` makes its intervals: as long as `span`, and with `now` in the last of them.

    Intervals begin at multiples of their length, whenever somebody looks: a commit stays in the one that it was in, and
    bars that were drawn do not change any more. The last interval is not over yet.
    """
    step = span / points
    end = _EPOCH + ((now - _EPOCH) // step + 1) * step
    return end - span, end


def plot(
    beats: Iterable[Beat], lags: Iterable[LagPoint], *, start: datetime, end: datetime, points: int
) -> tuple[Point, ...]:
    """Equal intervals from `start` to `end`. Every commit between them is in exactly one."""
    step = (end - start) / points
    step_s = step.total_seconds()
    filled: list[list[Beat]] = [[] for _ in range(points)]
    for beat in beats:
        if start <= beat.at < end:
            filled[_slot(beat.at, start, step_s, points)].append(beat)
    made = [_point(start + step * number, found, step_s) for number, found in enumerate(filled)]
    for lag in sorted(lags, key=lambda lag: lag.at):
        if start <= lag.at < end:
            slot = _slot(lag.at, start, step_s, points)
            made[slot] = replace(made[slot], lag=lag.behind)
    return tuple(made)


def _slot(at: datetime, start: datetime, step_s: float, points: int) -> int:
    return min(points - 1, int((at - start).total_seconds() / step_s))


def _point(at: datetime, beats: Sequence[Beat], step_s: float) -> Point:
    times = [beat.seconds for beat in beats if beat.seconds is not None and beat.tally.commits]
    return Point(
        at=at,
        rows_per_s=sum(beat.tally.rows.total for beat in beats) / step_s,
        errors_per_s=sum(beat.tally.rows.error for beat in beats) / step_s,
        bytes_per_s=sum(beat.tally.received_bytes for beat in beats) / step_s,
        data_files=sum(beat.tally.data_files for beat in beats),
        batches=sum(beat.tally.commits for beat in beats),
        batch_s=sum(times) / len(times) if times else None,
    )
