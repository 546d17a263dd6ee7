"""Guessing passwords is slow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from lading.clock import Clock
from lading.errors import AuthError

FIRST_DELAY_S = 0.25
MOST_DELAY_S = 5.0
FORGET_AFTER_S = 900.0
MOST_KEYS = 10_000


@dataclass(slots=True)
class _Record:
    failures: int = 0
    not_before: float = 0.0
    last: float = 0.0


class Throttle:
    """Delays that grow with every wrong password of one user from one peer, up to a limit.

    The answer to a wrong password comes late, and the next attempt is looked at no sooner, also when it comes over
    another connection: attempts that come together are looked at one after the other. When more than the limit would
    have to be waited for, the attempt is refused without a look at its password.

    Other users, and the same user from elsewhere, do not wait. Nothing is durable: a new process begins anew.
    """

    def __init__(self, clock: Clock, wait: Callable[[float], None]) -> None:
        self._clock = clock
        self._wait = wait
        self._lock = threading.Lock()
        self._records: dict[tuple[str, str], _Record] = {}

    def admit(self, user: str, peer: str) -> None:
        """Wait until the next attempt may be looked at. Raises AuthError when too many are waiting."""
        delay = self.reserve(user, peer)
        if delay:
            self._wait(delay)

    def reserve(self, user: str, peer: str) -> float:
        """Take a turn. Says how many seconds to wait before the attempt may be looked at. Raises AuthError as above."""
        with self._lock:
            now = self._clock.monotonic_s()
            record = self._live(user, peer, now)
            if record is None:
                return 0.0
            delay = max(0.0, record.not_before - now)
            if delay > MOST_DELAY_S:
                msg = f"Access denied for user '{user}': too many wrong passwords"
                raise AuthError(msg, left="The password was not looked at.", todo=f"Try again in {delay:.0f} s.")
            record.not_before = now + delay + _delay_s(record.failures)
        return delay

    def punish(self, user: str, peer: str) -> None:
        """Note a wrong password, and wait before it is answered."""
        self.wait(self.note(user, peer))

    def wait(self, delay_s: float) -> None:
        """Keep the thread for so long."""
        self._wait(delay_s)

    def note(self, user: str, peer: str) -> float:
        """Note a wrong password. Says for how many seconds its answer is to wait."""
        with self._lock:
            now = self._clock.monotonic_s()
            record = self._live(user, peer, now)
            if record is None:
                self._make_room(now)
                record = self._records[user, peer] = _Record()
            record.failures += 1
            record.last = now
            delay = _delay_s(record.failures)
            record.not_before = max(record.not_before, now + delay)
        return delay

    def forgive(self, user: str, peer: str) -> None:
        """Note a right password."""
        with self._lock:
            self._records.pop((user, peer), None)

    def _live(self, user: str, peer: str, now: float) -> _Record | None:
        record = self._records.get((user, peer))
        if record is not None and now - record.last > FORGET_AFTER_S:
            del self._records[user, peer]
            return None
        return record

    def _make_room(self, now: float) -> None:
        if len(self._records) < MOST_KEYS:
            return
        old = [key for key, record in self._records.items() if now - record.last > FORGET_AFTER_S]
        for key in old or [min(self._records, key=lambda key: self._records[key].last)]:
            del self._records[key]


def _delay_s(failures: int) -> float:
    return min(MOST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(failures - 1, 30))
