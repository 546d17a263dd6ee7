"""The store as a service sees it that runs a job, and what it writes down of its own accord."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime

from lading.errors import JobChangedError
from lading.ids import JobId
from lading.jobs.record import JobRecord
from lading.jobs.tasks import TaskRecord
from lading.service.runtime.loop_ports import LoopStore
from lading.store.protocols import MetadataStore
from lading.store.records import AuditEntry, StoredJob

MAX_SAVES = 5


class HeldStore:
    """The store as it is for the service that runs a job: it takes no change when another one has the job."""

    def __init__(self, store: MetadataStore, service_id: str | None) -> None:
        self._store = store
        self._service_id = service_id

    def load_job_by_id(self, job_id: JobId) -> StoredJob:
        return self._store.load_job_by_id(job_id)

    def save_job(
        self,
        record: JobRecord,
        expected_version: int,
        *,
        tasks: Iterable[TaskRecord] = (),
        audit: AuditEntry | None = None,
    ) -> StoredJob:
        return self._store.save_job(record, expected_version, tasks=tasks, audit=audit, held_by=self._service_id)


def write_audit(store: LoopStore, job_id: JobId, action: str, facts: Mapping[str, str], at: datetime) -> None:
    """Write down what the service did to a job, on top of what somebody else saved meanwhile."""
    for _ in range(MAX_SAVES):
        stored = store.load_job_by_id(job_id)
        entry = AuditEntry(
            at=at, user="lading", action=action, job_id=job_id, subject=str(stored.record.full_name), facts=dict(facts)
        )
        with suppress(JobChangedError):  # Somebody changed the record meanwhile: read it again.
            store.save_job(stored.record, stored.version, audit=entry)
            return
