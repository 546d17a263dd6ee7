"""Time, as something that is handed in. Only this file asks the machine what time it is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What the rest of Lading knows of time."""

    def now(self) -> datetime:
        """Wall time, timezone-aware UTC."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never go backwards. Time in which the machine sleeps may not be among them."""
        ...

    def passed_s(self) -> float:
        """Seconds that never go backwards, and pass while the machine sleeps, too: for what ends elsewhere."""
        ...

    def sleep(self, delay_s: float) -> None:
        """Wait."""
        ...


NO_JUMP = timedelta(minutes=1)
"""Less is how clocks are kept right."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What both clocks showed at one time, so that it can be told later whether somebody set the wall clock."""

    wall: datetime
    steady_s: float

    @classmethod
    def of(cls, clock: Clock) -> Moment:
        return cls(clock.now(), clock.monotonic_s())

    def jump_to(self, later: Moment) -> timedelta:
        """How far wall time was set between two moments of one process, forwards or back; zero when it was not.

        Time in which the machine slept looks as if it was set forwards.
        """
        jump = later.wall - self.wall - timedelta(seconds=later.steady_s - self.steady_s)
        return jump if abs(jump) > NO_JUMP else timedelta()


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        return time.monotonic()

    def passed_s(self) -> float:
        # Linux has such a clock; elsewhere the other one is the best there is.
        return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()

    def sleep(self, delay_s: float) -> None:
        time.sleep(delay_s)
