"""Whether there is room for another job."""

from __future__ import annotations

from lading.errors import ConfigError, ConflictError
from lading.jobs.dialects import Dialect
from lading.jobs.record import JobName
from lading.service.session import Session
from lading.service.statements.bound import database_of
from lading.sql.statements.parts import QualifiedName

DEFAULT_MOST_JOBS = 10_000


def check_room(session: Session, dialect: Dialect, name: QualifiedName) -> None:
    """Refuse a name that is taken, and more jobs than are allowed."""
    store, database = session.lading.store, database_of(session, name)
    wanted = JobName(kind=dialect.kind, name=name.name, database=database if dialect.has_database else "")
    if store.find_job(wanted) is not None:
        msg = dialect.exists.format(own=name.name, db=database)
        raise ConflictError(msg, code="JobExists", left="It was not touched.", todo=dialect.exists_todo)
    if not dialect.most_jobs:
        return
    most = int(store.read_setting(dialect.most_jobs) or DEFAULT_MOST_JOBS)
    if len(store.list_jobs(kind=dialect.kind)) > most:
        msg = f"There are more than {most} {dialect.noun}s. exceed limit: {dialect.most_jobs} is {most}"
        raise ConfigError(msg, left="Nothing was changed.", todo="Stop jobs that are not needed.")
