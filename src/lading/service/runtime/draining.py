"""`run`: load what is there now, and end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from lading.clock import Clock
from lading.commit.telling import has_due_state
from lading.errors import LadingError
from lading.jobs.events import Tick
from lading.jobs.pausing import next_try
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.model.positions import Positions
from lading.service.runtime.context import OpenJob
from lading.service.runtime.runner import JobRunner

Progress = Callable[[JobRecord, Bill], None]
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """When to end, for all jobs of one call."""

    clock: Clock
    deadline_s: float | None = None
    stop: threading.Event

    def left_s(self) -> float | None:
        """Seconds until the time is over; None: it never is."""
        return None if self.deadline_s is None else self.deadline_s - self.clock.monotonic_s()

    def rest(self, runner: JobRunner, seconds: float) -> bool:
        """Wait, but not longer than there is time. Whether it is to end."""
        left_s = self.left_s()
        until_s = self.clock.monotonic_s() + (seconds if left_s is None else min(seconds, left_s))
        while not self.stop.is_set() and (rest_s := until_s - self.clock.monotonic_s()) > 0:
            if runner.wait_for_halt(min(rest_s, _LOOK_S)):
                return True
        return self.stop.is_set()


def drain(runner: JobRunner, until: Until, on_progress: Progress | None) -> JobRecord:
    """Run a job until all that is there now is loaded, or until it has stopped.

    A stream that keeps growing is read up to where it ended when the job was opened; results that are due then are
    written, too. A batch that was not full and has
    not come that far waits for more, as in a service: else a live topic would be loaded in as many small commits as
    the machine can make.
    """
    if on_progress is not None:
        runner.on_progress = lambda bill: on_progress(runner.record(), bill)
    runner.look_everywhere()
    ends = _Ends(runner)
    if (due := next_try(runner.record(), until.clock.now())) is not None:
        runner.apply(Tick(at=due))  # The fault may be over: a run does not wait, as a service does.
    patience_s: float | None = None
    while not until.stop.is_set():
        has_more = runner.run_once() and not ends.are_reached()
        left_s = until.left_s()
        runner.is_cut_off = has_more and left_s is not None and left_s <= runner.retry_in_s
        if runner.is_cut_off or (left_s is not None and left_s <= 0):
            break
        if has_more:
            if until.rest(runner, runner.retry_in_s or ends.rest_s()):
                break
            continue
        # Files that may still be written are waited for, once: what goes on being written is for the next run.
        wait_s = runner.survey.settles_in_s if runner.survey is not None else 0.0
        patience_s = (wait_s if patience_s is None else patience_s) - wait_s
        if not wait_s or patience_s < 0 or until.rest(runner, wait_s):
            break
    return runner.record()


class _Ends:
    """Where a stream ended when its job was opened. Files have no end that could be pinned: they come in any order."""

    def __init__(self, runner: JobRunner) -> None:
        self._runner = runner
        self._is_reached: Callable[[Positions], bool] | None = None
        runner.on_open = self._pin
        self._seen = self._head()
        if runner.opened is not None and self._seen is not None:
            with suppress(LadingError):  # The batch that follows says what is wrong with the source.
                self._pin(runner.opened, self._seen)

    def are_reached(self) -> bool:
        """Whether the commit that was just made has come that far, and nothing is due. A failed attempt has not."""
        bill, seen = self._head(), self._seen
        self._seen = bill
        if bill is None or bill == seen or self._is_reached is None or has_due_state(bill):
            return False
        return self._is_reached(bill.positions)

    def rest_s(self) -> float:
        """How long to wait for a larger batch."""
        is_due = self._seen is not None and has_due_state(self._seen)
        return 0.0 if self._is_reached is None or self._runner.was_full or is_due else self._runner.interval_s

    def _pin(self, opened: OpenJob, bill: Bill) -> None:
        if opened.compiled.source.pin is not None and self._is_reached is None:
            self._is_reached = opened.compiled.source.pin(bill.positions)

    def _head(self) -> Bill | None:
        opened = self._runner.opened
        return opened.coordinator.bill if opened is not None else None
