"""What only a running service can show: how long each step took, and the rhythm of the last minutes.

Losing it loses nothing but plots: everything that counts is in the bills.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from lading.clock import Clock
from lading.ids import JobId
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.model.table import ColumnChange
from lading.status.outcomes import Outcome

STEPS = ("plan", "stage", "check", "bill", "commit", "settle", "follow")
KEPT_BATCHES = 720
MOST_JOBS = 2000
"""Of more jobs than this nothing is remembered: a plot is not worth the memory of the service."""
SILENCE = timedelta(hours=24)
"""A job that was not heard of for as long as plots reach back makes room for another."""
PULSE_MINUTES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One batch, by its steps."""

    at: datetime
    seconds: dict[str, float]


@dataclass(slots=True)
class _Known:
    heard_at: datetime
    open: dict[str, float] = field(default_factory=dict)
    timings: deque[Timing] = field(default_factory=lambda: deque(maxlen=KEPT_BATCHES))
    minutes: dict[int, int] = field(default_factory=dict)


class StepMemory:
    """A watch of the runners. Bounded; safe to use from many threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[JobId, _Known] = {}

    # What runners tell.

    def step(self, record: JobRecord, step: str, seconds: float) -> None:
        """A step ended. The first of a batch begins a new count."""
        with self._lock:
            known = self._of(record.job_id)
            if known is None:
                return
            if step == STEPS[0]:
                known.open = {}
            known.open[step] = known.open.get(step, 0.0) + seconds

    def committed(self, record: JobRecord, bill: Bill) -> None:
        """A bill is the head now."""
        minute = int(bill.billed_at.timestamp() // 60)
        with self._lock:
            known = self._of(record.job_id)
            if known is not None:
                known.minutes[minute] = known.minutes.get(minute, 0) + bill.tally.rows.total
                for old in [kept for kept in known.minutes if kept <= minute - PULSE_MINUTES]:
                    del known.minutes[old]

    def batch_ended(self, record: JobRecord, outcome: Outcome, seconds: float) -> None:
        """A batch is over: its steps are kept, whatever its end."""
        with self._lock:
            known = self._of(record.job_id)
            if known is not None and known.open:
                known.timings.append(Timing(at=self._clock.now(), seconds=known.open))
                known.open = {}

    def fenced(self, record: JobRecord) -> None:
        """Nothing to measure."""

    def unrecorded(self, record: JobRecord) -> None:
        pass

    def auto_resumed(self, record: JobRecord) -> None:
        """Nothing to measure."""

    def evolved(self, record: JobRecord, changes: Sequence[ColumnChange]) -> None:
        """Nothing to measure."""

    def files_behind(self, record: JobRecord, files: Mapping[str, int]) -> None:
        """Nothing to measure."""

    def files_left_out(self, record: JobRecord, files: Mapping[str, int], remark: str) -> None:
        """Nothing to measure."""

    # What pages ask.

    def pulse(self, job_id: JobId) -> list[int]:
        """Rows of each of the last minutes, oldest first; empty when there was none."""
        now = int(self._clock.now().timestamp() // 60)
        with self._lock:
            known = self._known.get(job_id)
            minutes = dict(known.minutes) if known else {}
        rows = [minutes.get(minute, 0) for minute in range(now - PULSE_MINUTES + 1, now + 1)]
        return rows if any(rows) else []

    def steps(self, job_id: JobId, starts: Sequence[datetime], step_s: float) -> dict[str, list[float | None]]:
        """Mean seconds of each step in each interval; None where no batch ended."""
        with self._lock:
            known = self._known.get(job_id)
            timings = list(known.timings) if known else []
        found: list[list[Timing]] = [[] for _ in starts]
        if starts:
            for timing in timings:
                number = int((timing.at - starts[0]) / timedelta(seconds=step_s))
                if 0 <= number < len(found) and timing.at >= starts[0]:
                    found[number].append(timing)
        return {step: [_mean(batch, step) for batch in found] for step in STEPS} if any(found) else {}

    def _of(self, job_id: JobId) -> _Known | None:
        """Those that were heard of last stand last."""
        now = self._clock.now()
        known = self._known.pop(job_id, None) or _Known(heard_at=now)
        for old in [each for each, kept in islice(self._known.items(), 2) if now - kept.heard_at > SILENCE]:
            del self._known[old]
        if len(self._known) >= MOST_JOBS:
            return None
        known.heard_at = now
        self._known[job_id] = known
        return known


def _mean(timings: Sequence[Timing], step: str) -> float | None:
    if not timings:
        return None
    return sum(timing.seconds.get(step, 0.0) for timing in timings) / len(timings)
