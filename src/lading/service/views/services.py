"""Which of several services runs which job."""

from __future__ import annotations

from lading.ids import JobId
from lading.service.installation import Installation
from lading.store.records import ServiceEntry


def show_service(entry: ServiceEntry) -> str:
    """A service as people are told of it."""
    return f"service {entry.service_id} on {entry.host}, pid {entry.pid}"


def service_of(lading: Installation, job_id: JobId) -> str:
    """The service that has a job; empty when none has it."""
    holder = lading.store.list_leases().get(job_id)
    return next((show_service(entry) for entry in lading.store.list_services() if entry.service_id == holder), "")


def services_of(lading: Installation) -> dict[JobId, str]:
    """The service of each job, when several share the store: the same whichever of them is asked."""
    entries = {entry.service_id: show_service(entry) for entry in lading.store.list_services()}
    if len(entries) < 2:
        return {}
    return {job_id: entries[holder] for job_id, holder in lading.store.list_leases().items() if holder in entries}
