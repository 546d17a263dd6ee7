"""Time, as something that is handed in. Only this file asks the machine what time it is."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the rest of Lading knows of time."""

    def now(self) -> datetime:
        """Wall time, timezone-aware UTC."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never go backwards."""
        ...

    def sleep(self, delay_s: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        return time.monotonic()

    def sleep(self, delay_s: float) -> None:
        time.sleep(delay_s)
