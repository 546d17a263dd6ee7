"""Event time: the watermark that a batch leaves for the next one.

Each partition reports the largest event time that it handed on. The job's watermark is the smallest of those over the
partitions that are active, less the delay. It never falls, and batch N judges its rows by what bill N-1 says: a batch
that is repeated decides the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lading.clock import NO_JUMP
from lading.model.batch import Report
from lading.model.job import WatermarkRule
from lading.model.positions import PartitionState, Positions

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def advance_watermark(
    rule: WatermarkRule | None, before: Positions, after: Positions, reports: Sequence[Report], now: datetime
) -> Positions:
    """Positions after a batch, with event times and the watermark that follows from them.

    A source plans a split for each partition that has something to read: one without a split was read to its end. It
    is idle when nothing came for long enough, or nothing that says how late it is there.
    """
    if rule is None:
        return after
    partitions = {
        name: state
        if _waits(after, state)
        else _noted(state, [report for report in reports if report.partition == name], now)
        for name, state in after.partitions.items()
    }
    active = [state for state in partitions.values() if not _waits(after, state) and _is_active(rule, state, now)]
    watermark = before.watermark_us
    times = [state.event_us for state in active if state.event_us is not None]
    if times and len(times) == len(active):
        # A partition that comes back, or a new one, does not pull it down: its rows may be late.
        found = min(times) - rule.delay_us
        watermark = found if watermark is None else max(watermark, found)
    return replace(after, partitions=partitions, watermark_us=watermark)


def latest_time(rule: WatermarkRule | None, planned_at: datetime) -> int | None:
    """The latest event time that may move the watermark, for a batch that is planned now. None: any may.

    One row of the year 9999 would make every other row late, for ever.
    """
    if rule is None or rule.max_future_us is None:
        return None
    return (planned_at - _EPOCH) // timedelta(microseconds=1) + rule.max_future_us


def _noted(state: PartitionState, reports: Sequence[Report], now: datetime) -> PartitionState:
    times = [time for time in (state.event_us, *(report.event_us for report in reports)) if time is not None]
    known = state.read_at
    # What was written before the clock was set back would keep it active until that time comes again.
    is_ahead = known is not None and known - now > NO_JUMP
    is_heard = known is None or is_ahead or any(map(_keeps_active, reports))
    return replace(state, event_us=max(times, default=None), read_at=now if is_heard else known)


def _keeps_active(report: Report) -> bool:
    """Whether a partition has still to be waited for.

    Rows that are all bad, left out by WHERE or too far ahead of the clock tell no event time, and a partition that
    has nothing else would hold the others for ever. One that brings late rows is catching up.
    """
    # A split was planned because there was something to read, also when it could not be read yet.
    could_not_be_read = not report.rows.total and report.end == report.start
    return report.event_us is not None or report.rows.late > 0 or could_not_be_read


def _waits(positions: Positions, state: PartitionState) -> bool:
    """Whether a parent has rows to come before its own. It is the parent then that holds the watermark."""
    known = positions.partitions
    return any(parent in known and not known[parent].finished for parent in state.parents)


def _is_active(rule: WatermarkRule, state: PartitionState, now: datetime) -> bool:
    """Whether it holds the watermark back."""
    if state.finished or state.read_at is None:
        return False
    return rule.idle_s is None or now - state.read_at < timedelta(seconds=rule.idle_s)
