"""The audit of what people changed."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from lading.ids import JobId
from lading.store.bodies import parse_body, render_body
from lading.store.database import Database
from lading.store.records import AuditEntry
from lading.store.schema import AUDIT


def append_entry(connection: Connection, entry: AuditEntry | None) -> None:
    """Write an entry in the transaction of the change it tells of."""
    if entry is not None:
        connection.execute(insert(AUDIT).values(at=entry.at, job_id=entry.job_id, body=render_body(entry)))


class SqlAudit:
    """See `protocols.Audit`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list_audit(self, *, job_id: JobId | None = None, limit: int = 1000) -> list[AuditEntry]:
        """The newest entries, newest first."""
        query = select(AUDIT.c.entry_id, AUDIT.c.body).order_by(AUDIT.c.entry_id.desc()).limit(limit)
        if job_id is not None:
            query = query.where(AUDIT.c.job_id == job_id)
        with self._database.read("Reading the audit") as connection:
            rows = connection.execute(query).all()
        return [parse_body(AuditEntry, row.body, where=f"Audit entry {row.entry_id}") for row in rows]
