"""One statement at a time changes a job.

A service has its home for itself, so locks are kept in memory. What runs batches needs none: records are compared
when they are saved, and heads when they are moved.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from lading.errors import JobStateError
from lading.ids import JobId

PATIENCE_S = 60.0
"""How long a statement waits for the one before it."""


class _JobLock:
    """Kept for as long as somebody holds or wants it. A statement may take it again inside itself."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()


class JobLocks:
    """ALTER, UNDO, PAUSE, RESUME, STOP of a job, one after the other."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[JobId, _JobLock] = WeakValueDictionary()
        self._finding = threading.Lock()

    @contextmanager
    def hold(self, job_id: JobId) -> Iterator[None]:
        """Wait for the statement that changes the job now. Raises JobStateError when that takes long."""
        with self._finding:
            job_lock = self._locks.get(job_id)
            if job_lock is None:
                self._locks[job_id] = job_lock = _JobLock()
        if not job_lock.lock.acquire(timeout=PATIENCE_S):
            msg = f"Another statement is still changing job {job_id}"
            todo = "Wait until its batch has ended, and try again."
            raise JobStateError(msg, left="Nothing was changed.", todo=todo, job_id=job_id)
        try:
            yield
        finally:
            job_lock.lock.release()
