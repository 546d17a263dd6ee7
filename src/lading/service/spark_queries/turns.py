"""Turns of queries, so that one user's leave room for the others'. For threads; `fair_turns` is for a loop."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from lading.clock import Clock
from lading.errors import UnavailableError
from lading.service.limits.cancellation import CancelToken, stopped
from lading.service.spark_queries.limits import QueryLimits

LOOK_S = 0.5


class QueryTurns:
    """At most `at_once` queries run, of one user at most `each`. Of those who wait, the user with the fewest goes."""

    def __init__(self, limits: QueryLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._changed = threading.Condition()
        self._running: Counter[str] = Counter()
        self._waiting: list[tuple[object, str]] = []

    def take(self, user: str, stop: CancelToken, seconds: float) -> Callable[[], None]:
        """Wait for a turn. Returns what gives it back. Raises UnavailableError when too many wait, or for too long."""
        ticket = object()
        with self._changed:
            self._join(ticket, user)
            until_s = self._clock.monotonic_s() + seconds
            try:
                while not self._is_next(ticket):
                    if stop.is_set:
                        raise stopped()
                    if self._clock.monotonic_s() > until_s:
                        msg = f"The query waited {seconds:g} s for its turn"
                        raise _busy(msg)
                    self._changed.wait(LOOK_S)
                self._running[user] += 1
            finally:
                self._waiting = [each for each in self._waiting if each[0] is not ticket]
                self._changed.notify_all()
        return lambda: self._give_back(user)

    def _join(self, ticket: object, user: str) -> None:
        most = self._limits.waiting
        if len(self._waiting) >= most:
            msg = f"{most} queries wait for their turn already"
            raise _busy(msg)
        if sum(whose == user for _, whose in self._waiting) >= max(1, most // 4):
            msg = f"{max(1, most // 4)} queries of user '{user}' wait for their turn already"
            raise _busy(msg)
        self._waiting.append((ticket, user))

    def _is_next(self, ticket: object) -> bool:
        if self._running.total() >= self._limits.at_once:
            return False
        able = [each for each in self._waiting if self._running[each[1]] < self._limits.each]
        return bool(able) and min(able, key=lambda each: self._running[each[1]])[0] is ticket

    def _give_back(self, user: str) -> None:
        with self._changed:
            self._running[user] -= 1
            if not self._running[user]:
                del self._running[user]
            self._changed.notify_all()


def _busy(what: str) -> UnavailableError:
    return UnavailableError(what, left="It was not begun.", todo="Retry later.")
