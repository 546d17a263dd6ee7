"""Ending from outside what a thread does for one statement."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from lading.errors import ConfigError

T = TypeVar("T")


class CancelToken:
    """One for each statement. A face sets it when nobody wants the answer any more.

    Queries end soon after it is set. Statements that change something do not look at it once they have begun: they
    are done whole or not at all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._enders: list[Callable[[], None]] = []

    @property
    def is_set(self) -> bool:
        """Whether it was set. It stays so."""
        return self._is_set

    def set(self) -> None:
        """End what runs. Never waits."""
        with self._lock:
            enders = [] if self._is_set else list(self._enders)
            self._is_set = True
        for end in enders:
            end()

    def check(self) -> None:
        """Raise when it was set."""
        if self._is_set:
            raise stopped()

    def run(self, work: Callable[[], T]) -> T:
        """Do something in this thread as the statement that this ends. What was ended before it began is not done."""
        self.check()
        token = _CURRENT.set(self)
        try:
            return work()
        finally:
            _CURRENT.reset(token)

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """Within this, `end` is called when it is set; at once when it was. It must not wait."""
        with self._lock:
            self._enders.append(end)
            is_late = self._is_set
        if is_late:
            end()
        try:
            yield
        finally:
            with self._lock:
                self._enders.remove(end)


_CURRENT: ContextVar[CancelToken | None] = ContextVar("lading_stop", default=None)


def current_stop() -> CancelToken:
    """What ends the statement of this thread; one that nobody sets, when nobody can end it."""
    return _CURRENT.get() or CancelToken()


def stopped() -> ConfigError:
    """A query was ended before its answer was there."""
    return ConfigError("The query was ended", left="Nothing was changed.", todo="Ask again.")
