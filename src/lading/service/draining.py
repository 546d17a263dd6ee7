"""`run`: load what is there now, and end."""

from __future__ import annotations

from collections.abc import Callable

from lading.clock import Clock
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.service.runner import JobRunner

Progress = Callable[[JobRecord, Bill], None]


def drain(runner: JobRunner, clock: Clock, deadline_s: float | None, on_progress: Progress | None) -> JobRecord:
    """Run a job until all that is there now is loaded, or until it has stopped."""
    if on_progress is not None:
        runner.on_progress = lambda bill: on_progress(runner.record(), bill)
    runner.look_everywhere()
    patience_s: float | None = None
    while True:
        has_more = runner.run_once()
        left_s = None if deadline_s is None else deadline_s - clock.monotonic_s()
        runner.is_cut_off = has_more and left_s is not None and left_s <= runner.retry_in_s
        if runner.is_cut_off or (left_s is not None and left_s <= 0):
            break
        if has_more:
            if runner.wait_for_halt(runner.retry_in_s):
                break
            continue
        # Files that may still be written are waited for, once: what goes on being written is for the next run.
        wait_s = runner.survey.settles_in_s if runner.survey is not None else 0.0
        patience_s = (wait_s if patience_s is None else patience_s) - wait_s
        if not wait_s or patience_s < 0 or runner.wait_for_halt(wait_s if left_s is None else min(wait_s, left_s)):
            break
    return runner.record()
