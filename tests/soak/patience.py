"""Who must get on: a job that has rows to load and commits nothing for too long is stuck."""

from __future__ import annotations

from lading.clock import Clock
from tests.soak.counts import Counts


class Patience:
    """Blames a job that stands still, once for each time that it does."""

    def __init__(self, patience_s: float, clock: Clock) -> None:
        self._patience_s, self._clock = patience_s, clock
        self._since: dict[str, tuple[int, float]] = {}
        """By name: how far it was, and when that was first seen."""
        self._blamed: set[str] = set()

    def look(self, name: str, reached: int, counts: Counts, *, has_more: bool = True) -> None:
        """`reached` grows with each commit. Without more to load it may rest."""
        now_s = self._clock.monotonic_s()
        known, since_s = self._since.get(name, (-1, now_s))
        if reached != known or not has_more:
            self._since[name] = reached, now_s
            self._blamed.discard(name)
        elif now_s - since_s > self._patience_s and name not in self._blamed:
            self._blamed.add(name)
            counts.blame("STUCK", f"{name} has rows to load, and committed nothing for {now_s - since_s:.0f} seconds")

    def excuse(self) -> None:
        """Nobody could get on until now."""
        now_s = self._clock.monotonic_s()
        self._since = {name: (reached, now_s) for name, (reached, _) in self._since.items()}
