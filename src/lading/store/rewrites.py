"""Records of an old store, written again in the form of today."""

from __future__ import annotations

from contextlib import suppress

from sqlalchemy import Connection, select, update

from lading.errors import RecordError
from lading.jobs.record import JobRecord
from lading.store.bodies import parse_body, render_body
from lading.store.schema import JOBS


def rewrite_jobs(connection: Connection) -> None:
    """Every job, so that what it loads is read from its text once. One that cannot be read is left as it is."""
    for job_id, body in connection.execute(select(JOBS.c.job_id, JOBS.c.body)).all():
        with suppress(RecordError):  # Those who open the job are told.
            record = parse_body(JobRecord, body, where=f"Job {job_id}")
            connection.execute(update(JOBS).where(JOBS.c.job_id == job_id).values(body=render_body(record)))
