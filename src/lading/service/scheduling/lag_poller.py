"""Asks streams now and then how far their jobs are behind, and tells the metrics.

Paused jobs are asked about too: their source goes on deleting. What cannot be asked is not told, and what was told
before is forgotten after a while.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial

from lading.errors import LadingError
from lading.ids import JobId
from lading.jobs.record import JobRecord
from lading.model.positions import Positions
from lading.service.installation import Installation
from lading.service.telemetry.lag_cache import MOST_ASKED
from lading.service.telemetry.metrics import Metrics
from lading.service.views.loads import ask_stream, views_of
from lading.sources.registry import is_stream, kind_of
from lading.sources.streams import StreamSight
from lading.status.lag import LagUnit

EVERY_S = 30.0

Sighting = Callable[["Installation", JobRecord, Positions], StreamSight]


class LagRounds:
    """One thread of a service."""

    def __init__(
        self, lading: Installation, metrics: Metrics, *, every_s: float = EVERY_S, sight: Sighting | None = None
    ) -> None:
        self._lading = lading
        self._metrics = metrics
        self._every_s = every_s
        self._sight = sight or ask_stream
        self._watch = views_of(lading).watch
        self._watch.listeners.append(self._heard)
        self._ending = threading.Event()
        self._log = logging.getLogger("lading.lag")
        self._thread = threading.Thread(target=self._run, name="lading-lag-rounds", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End; an answer that is still waited for is given up."""
        self._ending.set()
        if self._heard in self._watch.listeners:
            self._watch.listeners.remove(self._heard)
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """One round over all jobs that read streams."""
        records = [stored.record for stored in self._lading.store.list_jobs() if is_stream(stored.record.spec)]
        for first in range(0, len(records), MOST_ASKED):
            if self._ending.is_set():
                return
            self._look_at(records[first : first + MOST_ASKED])

    def _look_at(self, records: Sequence[JobRecord]) -> None:
        asks = {}
        for record in records:
            positions = views_of(self._lading).positions(record)
            if positions.partitions:
                asks[record.job_id] = partial(self._sight, self._lading, record, positions)
        self._watch.look(asks)

    def _heard(self, job_id: JobId, sight: StreamSight) -> None:
        """A stream answered: to a round, or to somebody who looks at the job."""
        try:
            record = self._lading.store.load_job_by_id(job_id).record
        except LadingError:
            return  # The job is gone, or the store is away; the next answer comes soon.
        self._metrics.lag_seen(
            record, unit=_unit_of(record), partitions=sight.lag, seconds_to_trim=sight.seconds_to_trim
        )

    def _run(self) -> None:
        while not self._ending.wait(self._every_s):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - logged, and looked at again
                self._log.exception("lags cannot be looked at, trying again")


def _unit_of(record: JobRecord) -> LagUnit:
    return kind_of(record.spec.source.kind).lag_unit if record.spec is not None else LagUnit.MILLISECONDS
