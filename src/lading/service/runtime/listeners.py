"""Telling the listeners of one job, one notice after the other, and leaving those alone for a while that fail.

What is told is in the bill; here is only when it is tried. A process that dies forgets that, and tries at once.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lading.clock import Clock
from lading.errors import LadingError
from lading.model.bill import Bill
from lading.model.notices import ListenerFailure, Notice, NoticeKey
from lading.service.security.redaction import redact

FIRST_WAIT_S = 10.0
LONGEST_WAIT_S = 600.0
ROUND_S = 30.0
"""After so long the batch goes on, and the rest is told after it."""
_log = logging.getLogger("lading.listeners")


class Listener(Protocol):
    """One who is told."""

    def tell(self, bill: Bill, notice: Notice) -> None:
        """Tell that a partition is done, within a bounded time. The same notice again changes nothing.

        Returns when it was taken for certain, and raises otherwise.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Trouble:
    failure: ListenerFailure
    next_s: float


class JobListeners:
    """See `lading.commit.protocols.Listeners`."""

    def __init__(self, listeners: Mapping[str, Listener], clock: Clock) -> None:
        self._listeners = listeners
        self._clock = clock
        self._troubles: dict[str, _Trouble] = {}

    @property
    def failures(self) -> tuple[ListenerFailure, ...]:
        """Those that could not be told when they were last tried."""
        return tuple(each.failure for _, each in sorted(self._troubles.items()))

    def is_due(self, notices: Sequence[Notice]) -> bool:
        """Whether one of these can be told now."""
        now_s = self._clock.monotonic_s()
        return any(self._may_be_tried(notice.listener, now_s) for notice in notices)

    def tell(self, bill: Bill, notices: Sequence[Notice]) -> Collection[NoticeKey]:
        """Tell what can be told, and say what was taken."""
        taken, begun_s = list[NoticeKey](), self._clock.monotonic_s()
        for notice in notices:
            now_s = self._clock.monotonic_s()
            if now_s - begun_s >= ROUND_S:
                break
            if self._may_be_tried(notice.listener, now_s) and self._is_told(bill, notice):
                taken.append(notice.key)
        return taken

    def _may_be_tried(self, name: str, now_s: float) -> bool:
        trouble = self._troubles.get(name)
        return trouble is None or now_s >= trouble.next_s

    def _is_told(self, bill: Bill, notice: Notice) -> bool:
        name = notice.listener
        try:
            self._listeners[name].tell(bill, notice)
        except Exception as error:  # noqa: BLE001 - told in the record; nothing of a load depends on it
            self._note(bill, notice, error)
            return False
        self._troubles.pop(name, None)
        return True

    def _note(self, bill: Bill, notice: Notice, error: Exception) -> None:
        name, known = notice.listener, self._troubles.get(notice.listener)
        why = redact(error.what if isinstance(error, LadingError) else f"{type(error).__name__}: {error}")
        tries = known.failure.tries + 1 if known is not None else 1
        failure = ListenerFailure(listener=name, tries=tries, error=why, at=self._clock.now())
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(tries - 1, 10))
        self._troubles[name] = _Trouble(failure, self._clock.monotonic_s() + wait_s)
        _log.warning(
            "listener %s could not be told of partition %r, trying again in %g s: %s",
            name,
            notice.partition,
            wait_s,
            why,
            extra={"job": bill.job_name},
        )
