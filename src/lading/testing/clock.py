"""A clock that a test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class ManualClock:
    """Stands still until it is told to go on; sleeping moves it."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._asleep = timedelta()

    def now(self) -> datetime:
        return self._now

    def monotonic_s(self) -> float:
        return (self._now - self._asleep).timestamp()

    def passed_s(self) -> float:
        return self._now.timestamp()

    def sleep(self, delay_s: float) -> None:
        self._now += timedelta(seconds=delay_s)

    def suspend(self, delay_s: float) -> None:
        """The machine sleeps: the monotonic clock stands still."""
        self._now += timedelta(seconds=delay_s)
        self._asleep += timedelta(seconds=delay_s)
