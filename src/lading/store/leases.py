"""Services that share a store, and which of them runs which job."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, delete, select, update

from lading.errors import FencedError, RecordError
from lading.ids import JobId
from lading.store.bodies import parse_body, render_body
from lading.store.database import Database
from lading.store.records import ServiceEntry
from lading.store.schema import LEASES, SERVICES

_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)


class SqlLeases:
    """See `protocols.Leases`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def beat(self, entry: ServiceEntry) -> None:
        """Say that a service is alive."""
        row = {"service_id": entry.service_id, "beat": entry.beat, "body": render_body(entry)}
        with self._database.write(f"The heartbeat of service {entry.service_id}") as connection:
            self._database.put(connection, SERVICES, row)

    def list_services(self) -> list[ServiceEntry]:
        """Those that have said so and did not say goodbye; some may have died."""
        with self._database.read("Listing the services") as connection:
            rows = connection.execute(select(SERVICES).order_by(SERVICES.c.service_id)).all()
        return [_entry(row.service_id, row.beat, row.body) for row in rows]

    def check_lease(self, job_id: JobId, service_id: str) -> None:
        """Raise FencedError, code LeaseLost, when the service does not have the job."""
        with self._database.read(f"Looking at the lease of job {job_id}") as connection:
            check_lease(connection, job_id, service_id, holds=False)

    def list_leases(self) -> dict[JobId, str]:
        """Which service has which job."""
        with self._database.read("Listing the leases") as connection:
            return {JobId(row.job_id): row.service_id for row in connection.execute(select(LEASES))}

    def take_lease(self, job_id: JobId, service_id: str, *, held_by: str | None) -> bool:
        """Take a job that nobody has, or the one that was seen to have it. False: somebody else was faster."""
        with self._database.write(f"Taking the lease of job {job_id}") as connection:
            if held_by is None:
                return self._database.insert_new(connection, LEASES, {"job_id": job_id, "service_id": service_id})
            seen = (LEASES.c.job_id == job_id) & (LEASES.c.service_id == held_by)
            return connection.execute(update(LEASES).where(seen).values(service_id=service_id)).rowcount == 1

    def drop_lease(self, job_id: JobId, service_id: str) -> None:
        """Give a job back, if the service has it."""
        with self._database.write(f"Giving back the lease of job {job_id}") as connection:
            mine = (LEASES.c.job_id == job_id) & (LEASES.c.service_id == service_id)
            connection.execute(delete(LEASES).where(mine))

    def forget_service(self, service_id: str) -> None:
        """A service has ended: its jobs are free."""
        with self._database.write(f"Forgetting service {service_id}") as connection:
            connection.execute(delete(LEASES).where(LEASES.c.service_id == service_id))
            connection.execute(delete(SERVICES).where(SERVICES.c.service_id == service_id))


def _entry(service_id: str, beat: int, body: str) -> ServiceEntry:
    """A service of another version may say more than this one knows: it lives all the same."""
    try:
        return parse_body(ServiceEntry, body, where="A service")
    except RecordError:
        return ServiceEntry(service_id=service_id, host="?", pid=0, home="?", started_at=_UNKNOWN, beat=beat)


def check_lease(connection: Connection, job_id: JobId, service_id: str, *, holds: bool = True) -> None:
    """Refuse, in the transaction of a change, a service that does not have the job any more. Raises FencedError."""
    query = select(LEASES.c.service_id).where(LEASES.c.job_id == job_id)
    # The row is held until the change is in: nobody takes the lease in between.
    holder = connection.execute(query.with_for_update(read=True) if holds else query).scalar_one_or_none()
    if holder != service_id:
        who = f"service {holder} has it" if holder else "no service has it now"
        msg = f"This service does not have job {job_id} any more: {who}"
        todo = "Nothing: the job goes on there. See SHOW SERVICES."
        raise FencedError(msg, code="LeaseLost", left="Nothing was changed.", todo=todo, job_id=job_id, holder=holder)


def is_lease_lost(error: Exception) -> bool:
    """Whether a change was refused because another service has the job now."""
    return isinstance(error, FencedError) and error.code == "LeaseLost"
