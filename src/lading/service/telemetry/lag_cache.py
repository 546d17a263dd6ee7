"""How far jobs are behind, asked of streams with little patience: a SHOW never waits for a broker that is down."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lading.clock import Clock
from lading.errors import LadingError
from lading.ids import JobId
from lading.sources.streams import StreamSight

FRESH_S = 10.0
"""So long an answer is not asked for again."""
STALE_S = 60.0
"""An answer that is older is not shown: it would be taken for the present one."""
PATIENCE_S = 2.0
"""So long all answers that a statement needs are waited for together."""
MOST_ASKED = 32
"""So many streams are asked at once; the others keep their last answer."""

Ask = Callable[[], StreamSight]


@dataclass(slots=True)
class _Answer:
    sight: StreamSight | None
    at_s: float


class LagWatch:
    """Remembers the last answer of each job's stream. Safe to use from many threads."""

    def __init__(self, clock: Clock, *, patience_s: float = PATIENCE_S) -> None:
        self._clock = clock
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._answers: dict[JobId, _Answer] = {}
        self._asked: set[JobId] = set()
        self.listeners: list[Callable[[JobId, StreamSight], None]] = []
        """Told of every answer, so that all faces show the same."""

    def look(self, asks: Mapping[JobId, Ask]) -> dict[JobId, StreamSight]:
        """What is known of these jobs within a short time. Jobs of which nothing is known are missing."""
        with self._changed:
            now = self._clock.monotonic_s()
            wanted = {job_id for job_id in asks if not self._is_younger(job_id, now, FRESH_S)}
            for job_id in sorted(wanted - self._asked):
                if len(self._asked) >= MOST_ASKED:
                    break
                self._asked.add(job_id)
                # A thread that hangs in a client must not keep the process from ending.
                threading.Thread(target=self._ask, args=(job_id, asks[job_id]), daemon=True, name="lading-lag").start()
            waiting = wanted & self._asked
            self._changed.wait_for(lambda: not waiting & self._asked, timeout=self._patience_s)
            now = self._clock.monotonic_s()
            # What is too old to be shown is of no use to anybody: the jobs that nobody asks about may have ended.
            for job_id in [each for each in self._answers if not self._is_younger(each, now, STALE_S)]:
                del self._answers[job_id]
            found = {job_id: self._answers[job_id].sight for job_id in asks if self._is_younger(job_id, now, STALE_S)}
        return {job_id: sight for job_id, sight in found.items() if sight is not None}

    def forget(self, job_id: JobId) -> None:
        """The job was changed: what was known is not true any longer."""
        with self._changed:
            self._answers.pop(job_id, None)

    @property
    def remembered(self) -> int:
        """How many answers are kept."""
        with self._changed:
            return len(self._answers)

    def _is_younger(self, job_id: JobId, now: float, age_s: float) -> bool:
        answer = self._answers.get(job_id)
        return answer is not None and now - answer.at_s <= age_s

    def _ask(self, job_id: JobId, ask: Ask) -> None:
        sight: StreamSight | None = None
        try:
            sight = ask()
        except LadingError:
            pass  # Not known. The job itself says why when it next reads.
        else:
            for listener in list(self.listeners):
                listener(job_id, sight)
        finally:
            with self._changed:
                self._answers[job_id] = _Answer(sight, self._clock.monotonic_s())
                self._asked.discard(job_id)
                self._changed.notify_all()
