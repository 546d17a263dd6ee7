"""Which jobs have labels of their own in the metrics, so that their number stays bounded."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from lading.jobs.record import JobRecord
from lading.status.families import MOST_JOBS, OTHER, Labels


def labels_of(record: JobRecord) -> Labels:
    """Name as the API has it, database and kind."""
    return str(record.full_name), record.database, record.kind.value


class JobLabels:
    """First come, first served; a job that is gone makes room. Safe to use from many threads."""

    def __init__(self, most: int = MOST_JOBS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: dict[Labels, None] = {}

    def of(self, record: JobRecord) -> Labels:
        """The labels of a job; OTHER when there is no room."""
        labels = labels_of(record)
        with self._lock:
            if labels not in self._known and len(self._known) >= self._most:
                return OTHER
            self._known[labels] = None
            return labels

    def keep_only(self, records: Iterable[JobRecord]) -> list[Labels]:
        """Make room: forget all others. Returns those that were forgotten."""
        alive = {labels_of(record) for record in records}
        with self._lock:
            gone = [labels for labels in self._known if labels not in alive]
            for labels in gone:
                del self._known[labels]
        return gone
