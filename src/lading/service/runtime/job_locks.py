"""One statement at a time changes a job.

A service has its home for itself, so turns are kept in memory. What runs batches needs no turn: records are compared
when they are saved, and heads when they are moved.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary

from lading.errors import JobStateError
from lading.ids import JobId

if TYPE_CHECKING:
    from lading.service.facade import Lading

PATIENCE_S = 60.0
"""How long a statement waits for the one before it."""


class _Turn:
    """Kept for as long as somebody holds or wants it. A statement may take it again inside itself."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()


_TURNS: WeakKeyDictionary[Lading, WeakValueDictionary[JobId, _Turn]] = WeakKeyDictionary()
_FINDING = threading.Lock()


@contextmanager
def turn_of(lading: Lading, job_id: JobId) -> Iterator[None]:
    """ALTER, UNDO, PAUSE, RESUME, STOP of a job, one after the other. Raises JobStateError when that takes long."""
    with _FINDING:
        turns = _TURNS.setdefault(lading, WeakValueDictionary())
        turn = turns.get(job_id)
        if turn is None:
            turns[job_id] = turn = _Turn()
    if not turn.lock.acquire(timeout=PATIENCE_S):
        msg = f"Another statement is still changing job {job_id}"
        todo = "Wait until its batch has ended, and try again."
        raise JobStateError(msg, left="Nothing was changed.", todo=todo, job_id=job_id)
    try:
        yield
    finally:
        turn.lock.release()
