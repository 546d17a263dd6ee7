"""Waiting for the jobs of a running service."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lading.clock import Clock
from lading.errors import JobNotFoundError
from lading.jobs.batches import NOTHING_NEW
from lading.jobs.reasons import ReasonCode

_LOOK_S = 0.5
_GOES_ON = ("PENDING", "NEED_SCHEDULE", "RUNNING")

Job = dict[str, Any]
"""A job as the API shows it."""


class JobLister(Protocol):
    """A service."""

    def jobs(self) -> list[Job]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """How the jobs are at the end."""

    jobs: Sequence[Job]
    busy: Sequence[Job]
    """Those that had more to load when the time was over, or the wait was stopped."""


def names_to_watch(there: Sequence[Job], asked: Sequence[str] | None) -> set[str]:
    """Those that were asked for, or all that nobody has paused, as without a service."""
    known = {str(job["name"]): job for job in there}
    if missing := sorted(set(asked or ()) - known.keys()):
        msg = f"job not exist: {', '.join(missing)}"
        raise JobNotFoundError(msg, left="Nothing was run.", todo="Look at the list of jobs.")
    return set(asked) if asked else {name for name, job in known.items() if not _is_paused_by_hand(job)}


def _is_paused_by_hand(job: Job) -> bool:
    return job["state"] == "PAUSED" and (job["reason"] or {}).get("code") == ReasonCode.MANUAL_PAUSE_ERR.name


def wait_until_rest(
    service: JobLister,
    names: set[str],
    clock: Clock,
    timeout_s: float | None,
    stop: threading.Event,
    on_look: Callable[[Job], None] = lambda job: None,
) -> Waited:
    """Return when no job has anything left to load, or the time is over, or `stop` is set."""
    deadline_s = None if timeout_s is None else clock.monotonic_s() + timeout_s
    while True:
        shown = [job for job in service.jobs() if job["name"] in names]
        for job in shown:
            on_look(job)
        busy = [job for job in shown if job["state"] in _GOES_ON and not rests(job)]
        is_over = deadline_s is not None and clock.monotonic_s() > deadline_s
        if not busy or is_over or stop.wait(_LOOK_S):
            return Waited(jobs=shown, busy=busy)


def rests(job: Job) -> bool:
    """Whether it had nothing new at its last look at the source."""
    return str(job.get("message", "")).startswith(NOTHING_NEW)


def remark(job: Job) -> str:
    """What a job that has caught up says besides."""
    return str(job.get("message", "")).partition("; ")[2] if rests(job) else ""
