"""A running service, from another machine: statements, and jobs that are waited for.

It needs nothing but Python: `pip install --no-deps lading` puts it beside Airflow or Dagster without a library of
Lading that theirs would have to agree with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lading.cli.remote import remote_at
from lading.clock import Clock, SystemClock
from lading.errors import JobStateError, UnavailableError
from lading.jobs.batches import NOTHING_NEW
from lading.service.result import Result

ANSWER_S = 300.0
"""A statement that takes longer is given up by us; the service goes on with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How a job is doing."""

    job: str
    state: str
    table: str
    rows_loaded: int
    rows_bad: int
    is_caught_up: bool
    """At its last look at the source there was nothing new."""
    why: str
    """Why it is paused or was cancelled; else what it says of itself."""

    @property
    def is_stopped(self) -> bool:
        """Nothing is loaded until somebody does something, or its time to be tried again has come."""
        return self.state not in ("PENDING", "NEED_SCHEDULE", "RUNNING")


class ServiceClient:
    """One service, at a URL, for the holder of a token (CREATE TOKEN)."""

    def __init__(self, url: str, token: str, *, ca_file: str = "", clock: Clock | None = None) -> None:
        self._remote = remote_at(url, token, ca_file=ca_file, timeout_s=ANSWER_S)
        self._clock = clock or SystemClock()

    def sql(self, text: str) -> list[Result]:
        """Run statements; one answer for each."""
        return self._remote.sql(text)

    def pause(self, job: str) -> None:
        """PAUSE JOB or PAUSE ROUTINE LOAD."""
        self._remote.control(job, "pause")

    def resume(self, job: str) -> None:
        """RESUME JOB or RESUME ROUTINE LOAD."""
        self._remote.control(job, "resume")

    def progress(self, job: str) -> Progress:
        """How the job is doing now. Raises JobNotFoundError."""
        return _progress(self._remote.job(job)["job"])

    def wait_until_caught_up(
        self, job: str, *, timeout_s: float = 3600.0, quiet_s: float = 30.0, poll_s: float = 2.0
    ) -> Progress:
        """Return when the job has had nothing to load for `quiet_s` seconds; raise when it is stopped, or too slow.

        A service looks at a source every `max_interval` seconds, and lets files settle for five. What came just before
        this call is loaded when it returns if `quiet_s` is longer than both together.
        """
        began = quiet_since = self._clock.passed_s()
        while True:
            seen, now = self.progress(job), self._clock.passed_s()
            if seen.is_stopped:
                msg = f"Job {job} is {seen.state}: {seen.why}"
                raise JobStateError(msg, left="What it had committed stays.", todo="Correct that, then RESUME.")
            if not seen.is_caught_up:
                quiet_since = now
            elif now - quiet_since >= quiet_s:
                return seen
            if now - began >= timeout_s:
                msg = f"Job {job} has not caught up within {timeout_s:g} seconds: {seen.why}"
                raise UnavailableError(msg, left="It goes on.", todo="Wait again, or look at its lag.")
            self._clock.sleep(poll_s)


def _progress(job: dict[str, Any]) -> Progress:
    rows, reason = job["totals"]["rows"], job.get("reason") or {}
    said = str(job.get("message", ""))
    return Progress(
        job=job["name"],
        state=job["state"],
        table=job["target"],
        rows_loaded=rows["loaded"],
        rows_bad=rows["error"],
        is_caught_up=job["state"] == "RUNNING" and said.startswith(NOTHING_NEW),
        why=str(reason.get("message", "")) or said,
    )
