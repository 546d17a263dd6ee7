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


@dataclass(frozen=True, slots=True)
class _Silence:
    """How often a listener failed since it last took something, and when it is tried again."""

    tries: int
    next_s: float


class JobListeners:
    """See `lading.commit.protocols.Listeners`.

    A listener that fails is left alone for a while, with all of its notices. The notice that failed is then tried after
    the others: one that can never be told does not keep the others back.
    """

    def __init__(self, listeners: Mapping[str, Listener], clock: Clock) -> None:
        self._listeners = listeners
        self._clock = clock
        self._troubles: dict[tuple[str, str], _Trouble] = {}
        """By listener and partition."""
        self._silences: dict[str, _Silence] = {}

    @property
    def failures(self) -> tuple[ListenerFailure, ...]:
        """Those that could not be told when they were last tried: for each listener what failed last."""
        newest: dict[str, ListenerFailure] = {}
        for each in sorted((each.failure for each in self._troubles.values()), key=lambda failure: failure.at):
            newest[each.listener] = each
        return tuple(each for _, each in sorted(newest.items()))

    def is_due(self, notices: Sequence[Notice]) -> bool:
        """Whether one of these can be told now."""
        now_s = self._clock.monotonic_s()
        return any(self._may_be_tried(notice, now_s) for notice in notices)

    def tell(self, bill: Bill, notices: Sequence[Notice]) -> Collection[NoticeKey]:
        """Tell what can be told, and say what was taken."""
        taken, begun_s = list[NoticeKey](), self._clock.monotonic_s()
        pending = {_place(notice) for notice in notices}
        self._troubles = {place: each for place, each in self._troubles.items() if place in pending}
        for notice in sorted(notices, key=self._tries):
            now_s = self._clock.monotonic_s()
            if now_s - begun_s >= ROUND_S:
                break
            if self._may_be_tried(notice, now_s) and self._is_told(bill, notice):
                taken.append(notice.key)
        return taken

    def _tries(self, notice: Notice) -> int:
        trouble = self._troubles.get(_place(notice))
        return trouble.failure.tries if trouble is not None else 0

    def _may_be_tried(self, notice: Notice, now_s: float) -> bool:
        waits = (self._troubles.get(_place(notice)), self._silences.get(notice.listener))
        return all(each is None or now_s >= each.next_s for each in waits)

    def _is_told(self, bill: Bill, notice: Notice) -> bool:
        try:
            self._listeners[notice.listener].tell(bill, notice)
        except Exception as error:  # noqa: BLE001 - told in the record; nothing of a load depends on it
            self._note(bill, notice, error)
            return False
        self._troubles.pop(_place(notice), None)
        self._silences.pop(notice.listener, None)
        return True

    def _note(self, bill: Bill, notice: Notice, error: Exception) -> None:
        name, silence = notice.listener, self._silences.get(notice.listener)
        why = redact(error.what if isinstance(error, LadingError) else f"{type(error).__name__}: {error}")
        in_a_row = silence.tries + 1 if silence is not None else 1
        tries = max(self._tries(notice) + 1, in_a_row)
        failure = ListenerFailure(listener=name, tries=tries, error=why, at=self._clock.now())
        now_s, wait_s = self._clock.monotonic_s(), _wait_s(tries)
        self._troubles[_place(notice)] = _Trouble(failure, now_s + wait_s)
        self._silences[name] = _Silence(in_a_row, now_s + _wait_s(in_a_row))
        _log.warning(
            "listener %s could not be told of partition %r, trying again in %g s: %s",
            name,
            notice.partition,
            wait_s,
            why,
            extra={"job": bill.job_name},
        )


def _place(notice: Notice) -> tuple[str, str]:
    return notice.listener, notice.partition


def _wait_s(tries: int) -> float:
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(tries - 1, 10))
