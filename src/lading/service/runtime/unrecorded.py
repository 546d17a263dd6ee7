"""What happened to jobs and could not be written down: the store refused it, for example because its disk is full.

A record that cannot be written still says RUNNING. So the reason is kept in memory and laid over what is shown of the
job, until a turn of the job ends without such an error. Losing it with the process loses nothing: the next turn meets
the same error.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import datetime

from lading.ids import JobId
from lading.jobs.reasons import Reason, ReasonCode
from lading.jobs.record import JobRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    message: str
    at: datetime


class Unrecorded:
    """Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._notes: dict[JobId, _Note] = {}

    def note(self, job_id: JobId, why: str, at: datetime) -> None:
        """The last turn of a job could not be recorded."""
        message = f"The batch could not be recorded: {why} The job is tried again, and goes on from its table."
        with self._lock:
            self._notes[job_id] = _Note(message=message, at=at)

    def clear(self, job_id: JobId) -> None:
        """A turn of the job ended, and the store has what there was to write."""
        with self._lock:
            self._notes.pop(job_id, None)

    def has(self, job_id: JobId) -> bool:
        """Whether the last turn of a job could not be recorded."""
        with self._lock:
            return job_id in self._notes

    def overlay(self, record: JobRecord) -> JobRecord:
        """The record as it is to be shown."""
        with self._lock:
            found = self._notes.get(record.job_id)
        if found is None or record.is_final:
            return record
        reason = record.reason or Reason(code=ReasonCode.INTERNAL_ERR, message=found.message)
        return replace(record, reason=reason, last_error=found.message, last_error_at=found.at)
