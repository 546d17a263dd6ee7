"""Jobs and their tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, delete, select, update

from lading.errors import ConflictError, JobChangedError, JobNotFoundError
from lading.ids import JobId
from lading.jobs.dialects import DIALECTS
from lading.jobs.record import JobKind, JobName, JobRecord
from lading.jobs.tasks import KEPT_TASKS, TaskRecord
from lading.store.audit import append_entry
from lading.store.bodies import parse_body, render_body
from lading.store.database import Database
from lading.store.leases import check_lease
from lading.store.records import AuditEntry, StoredJob
from lading.store.schema import BILLS, JOBS, LEASES, TASKS


class SqlJobs:
    """See `protocols.Jobs`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_job(
        self, record: JobRecord, *, tasks: Iterable[TaskRecord] = (), audit: AuditEntry | None = None
    ) -> StoredJob:
        """Keep a new job. Raises ConflictError when a job that is not final has the name."""
        with self._database.write(f"Creating job {record.full_name}") as connection:
            if not self._database.insert_new(connection, JOBS, {**_columns(record), "version": 1}):
                raise _exists(record)
            self._save_tasks(connection, tasks)
            append_entry(connection, audit)
        return StoredJob(record=record, version=1)

    def save_job(
        self,
        record: JobRecord,
        expected_version: int,
        *,
        tasks: Iterable[TaskRecord] = (),
        audit: AuditEntry | None = None,
        held_by: str | None = None,
    ) -> StoredJob:
        """Replace a record that nobody changed since it was read, with its tasks and the audit, all or nothing.

        Raises JobChangedError when somebody did; read it again, apply the event again. `held_by`: the service that
        runs the job; raises FencedError, code LeaseLost, when it does not have it any more.
        """
        version = expected_version + 1
        mine = (JOBS.c.job_id == record.job_id) & (JOBS.c.version == expected_version)
        with self._database.write(f"Saving job {record.full_name}") as connection:
            if held_by is not None:
                check_lease(connection, record.job_id, held_by)
            change = update(JOBS).where(mine).values(**_columns(record), version=version)
            if connection.execute(change).rowcount != 1:
                raise _changed(connection, record, expected_version)
            self._save_tasks(connection, tasks)
            append_entry(connection, audit)
        return StoredJob(record=record, version=version)

    def find_job(self, name: JobName, *, include_final: bool = False) -> StoredJob | None:
        """The job with this name that is not final; else, if asked for, the newest one that is."""
        with self._database.read(f"Looking for job {name}") as connection:
            alive = _first(connection, _select().where(JOBS.c.live_key == name.live_key))
            if alive is not None or not include_final:
                return alive
            same = (JOBS.c.kind == name.kind.value) & (JOBS.c.name == name.name)
            if DIALECTS[name.kind].has_database:
                same &= JOBS.c.database == name.database
            return _first(connection, _select().where(same).order_by(JOBS.c.created_at.desc(), JOBS.c.job_id))

    def load_job_by_id(self, job_id: JobId) -> StoredJob:
        """A job, final or not. Raises JobNotFoundError."""
        with self._database.read(f"Loading job {job_id}") as connection:
            found = _first(connection, _select().where(JOBS.c.job_id == job_id))
        if found is None:
            raise _unknown(job_id)
        return found

    def list_jobs(
        self, *, kind: JobKind | None = None, database: str | None = None, include_final: bool = False
    ) -> list[StoredJob]:
        """Jobs, oldest first."""
        query = _select().order_by(JOBS.c.created_at, JOBS.c.job_id)
        if kind is not None:
            query = query.where(JOBS.c.kind == kind.value)
        if database is not None:
            query = query.where(JOBS.c.database == database)
        if not include_final:
            query = query.where(JOBS.c.live_key.is_not(None))
        with self._database.read("Listing jobs") as connection:
            return [_stored(row) for row in connection.execute(query)]

    def list_versions(self) -> dict[JobId, int]:
        """The versions of all jobs that are not final, oldest job first: they tell whether one was changed."""
        query = select(JOBS.c.job_id, JOBS.c.version).where(JOBS.c.live_key.is_not(None))
        with self._database.read("Looking whether jobs have changed") as connection:
            rows = connection.execute(query.order_by(JOBS.c.created_at, JOBS.c.job_id))
            return {JobId(row.job_id): row.version for row in rows}

    def forget_job(self, job_id: JobId) -> None:
        """Remove a job whose CREATE did not come to its end. What the audit says of it stays."""
        with self._database.write(f"Forgetting job {job_id}") as connection:
            _forget(connection, [job_id])

    def forget_jobs_ended_before(self, at: datetime) -> list[JobId]:
        """Remove final jobs that ended before this time, with all that was derived from their bills."""
        ended = select(JOBS.c.job_id).where(JOBS.c.live_key.is_(None), JOBS.c.ended_at < at)
        with self._database.write("Forgetting old jobs") as connection:
            job_ids = [JobId(job_id) for job_id in connection.execute(ended).scalars()]
            _forget(connection, job_ids)
        return job_ids

    def list_tasks(self, job_id: JobId | None = None) -> list[TaskRecord]:
        """Tasks of one job, or of all; newest first."""
        query = select(TASKS.c.body).order_by(TASKS.c.created_at.desc(), TASKS.c.task_id.desc(), TASKS.c.job_id)
        if job_id is not None:
            query = query.where(TASKS.c.job_id == job_id)
        with self._database.read("Listing tasks") as connection:
            return [parse_body(TaskRecord, text, where="A task") for text in connection.execute(query).scalars()]

    def _save_tasks(self, connection: Connection, tasks: Iterable[TaskRecord]) -> None:
        for task in tasks:
            row = {
                "job_id": task.job_id,
                "task_id": task.task_id,
                "state": task.state.value,
                "created_at": task.created_at,
                "body": render_body(task),
            }
            self._database.put(connection, TASKS, row)
            too_old = (TASKS.c.job_id == task.job_id) & (TASKS.c.task_id <= task.task_id - KEPT_TASKS)
            connection.execute(delete(TASKS).where(too_old))


def _columns(record: JobRecord) -> dict[str, Any]:
    return {
        "job_id": record.job_id,
        "name": record.name,
        "database": record.database,
        "kind": record.kind.value,
        "state": record.state.value,
        "live_key": None if record.is_final else record.full_name.live_key,
        "created_at": record.created_at,
        "ended_at": record.ended_at,
        "body": render_body(record),
    }


def _select() -> Select[Any]:
    return select(JOBS.c.job_id, JOBS.c.body, JOBS.c.version)


def _first(connection: Connection, query: Select[Any]) -> StoredJob | None:
    row = connection.execute(query.limit(1)).first()
    return None if row is None else _stored(row)


def _stored(row: Any) -> StoredJob:
    return StoredJob(record=parse_body(JobRecord, row.body, where=f"Job {row.job_id}"), version=row.version)


def _forget(connection: Connection, job_ids: Sequence[JobId]) -> None:
    for table in (TASKS, BILLS, LEASES, JOBS):
        connection.execute(delete(table).where(table.c.job_id.in_(job_ids)))


def _exists(record: JobRecord) -> ConflictError:
    msg = record.dialect.exists.format(own=record.name, db=record.database)
    todo = "Choose another name, or stop the job that has it."
    return ConflictError(msg, code="JobExists", left="Nothing was changed.", todo=todo, name=record.name)


def _unknown(job_id: JobId) -> JobNotFoundError:
    msg = f"No job has the id {job_id}"
    return JobNotFoundError(msg, left="Nothing was changed.", todo="Look at the list of jobs.", job_id=job_id)


def _changed(connection: Connection, record: JobRecord, expected: int) -> JobChangedError | JobNotFoundError:
    found = connection.execute(select(JOBS.c.version).where(JOBS.c.job_id == record.job_id)).scalar_one_or_none()
    if found is None:
        return _unknown(record.job_id)
    msg = f"Job {record.full_name} was changed by another process: version {expected} was expected, {found} is there"
    todo = "Read the job again and repeat the change."
    return JobChangedError(msg, left="Nothing was changed.", todo=todo, job_id=record.job_id, version=found)
