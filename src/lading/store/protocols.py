"""What the rest of Lading may ask of a store.

Laws: a change is durable when its call returns, and is there as a whole or not at all. Every read sees every change
that returned before it began. Anything may raise StoreError; then nothing was changed, except when the answer of
PostgreSQL itself was lost: the same call again then says JobChangedError or ConflictError, and reading it tells.

Not promised: that anything here is true of a table. Progress is in the bills; the store may be lost at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from lading.ids import JobId
from lading.jobs.record import JobKind, JobName, JobRecord
from lading.jobs.tasks import TaskRecord
from lading.model.bill import Bill
from lading.model.tally import Tally
from lading.store.records import (
    AccessTokenEntry,
    AuditEntry,
    BillEntry,
    CatalogEntry,
    DatabaseEntry,
    GrantEntry,
    RoleEntry,
    ServiceEntry,
    StoredJob,
    TableEntry,
    UserEntry,
)


class Jobs(Protocol):
    """Records of jobs, their tasks, and the audit of their changes.

    Laws: of two jobs with one name, at most one is not final. A record is replaced only by somebody who has seen the
    version that is there.
    """

    def create_job(
        self, record: JobRecord, *, tasks: Iterable[TaskRecord] = (), audit: AuditEntry | None = None
    ) -> StoredJob: ...

    def save_job(
        self,
        record: JobRecord,
        expected_version: int,
        *,
        tasks: Iterable[TaskRecord] = (),
        audit: AuditEntry | None = None,
        held_by: str | None = None,
    ) -> StoredJob: ...

    def find_job(self, name: JobName, *, include_final: bool = False) -> StoredJob | None: ...

    def load_job_by_id(self, job_id: JobId) -> StoredJob: ...

    def list_jobs(
        self, *, kind: JobKind | None = None, database: str | None = None, include_final: bool = False
    ) -> list[StoredJob]: ...

    def list_versions(self) -> dict[JobId, int]: ...

    def forget_job(self, job_id: JobId) -> None: ...

    def forget_jobs_ended_before(self, at: datetime) -> list[JobId]: ...

    def list_tasks(self, job_id: JobId | None = None) -> list[TaskRecord]: ...


class BillIndex(Protocol):
    """What is derived from bills. Following a bill again, or an older one after a newer one, changes nothing."""

    def followed_seq(self, job_id: JobId) -> int | None: ...

    def follow(self, bill: Bill) -> None: ...

    def list_bills(self, job_id: JobId, *, limit: int = 1000, before_seq: int | None = None) -> list[BillEntry]: ...

    def read_totals(self) -> dict[JobId, Tally]: ...

    def trim_bills(self, job_id: JobId, keep: int) -> int: ...


class Catalog(Protocol):
    """Names of databases and tables. Dropping a name touches no table."""

    def create_database(self, entry: DatabaseEntry) -> None: ...

    def drop_database(self, name: str) -> None: ...

    def list_databases(self) -> list[DatabaseEntry]: ...

    def create_table(self, entry: TableEntry) -> None: ...

    def find_table(self, database: str, name: str) -> TableEntry | None: ...

    def list_tables(self, database: str | None = None) -> list[TableEntry]: ...

    def drop_table(self, database: str, name: str) -> None: ...


class Catalogs(Protocol):
    """Catalogs that others keep. Dropping one touches nothing in it."""

    def create_catalog(self, entry: CatalogEntry) -> None: ...

    def save_catalog(self, entry: CatalogEntry, *, old_name: str) -> None: ...

    def drop_catalog(self, name: str) -> None: ...

    def find_catalog(self, name: str) -> CatalogEntry | None: ...

    def list_catalogs(self) -> list[CatalogEntry]: ...


class Audit(Protocol):
    """What people changed. Entries are added and never altered."""

    def list_audit(self, *, job_id: JobId | None = None, limit: int = 1000) -> list[AuditEntry]: ...


class Settings(Protocol):
    """Small values by key."""

    def read_setting(self, key: str) -> str | None: ...

    def list_settings(self) -> dict[str, str]: ...

    def write_setting(self, key: str, value: str) -> None: ...

    def drop_setting(self, key: str) -> None: ...


class Users(Protocol):
    """Users, their grants and their access tokens. Grants and tokens go with their user.

    Granting what is granted and revoking what is not changes nothing.
    """

    def create_user(self, entry: UserEntry, *, audit: AuditEntry | None = None) -> None: ...

    def save_user(self, entry: UserEntry, *, audit: AuditEntry | None = None) -> None: ...

    def find_user(self, name: str) -> UserEntry | None: ...

    def list_users(self) -> list[UserEntry]: ...

    def drop_user(self, name: str, *, audit: AuditEntry | None = None) -> None: ...

    def grant(self, entries: Sequence[GrantEntry], *, audit: AuditEntry | None = None) -> None: ...

    def revoke(self, entries: Sequence[GrantEntry], *, audit: AuditEntry | None = None) -> None: ...

    def list_grants(self, user: str | None = None) -> list[GrantEntry]: ...

    def create_access_token(self, entry: AccessTokenEntry, *, audit: AuditEntry | None = None) -> None: ...

    def find_access_token(self, token_id: str) -> AccessTokenEntry | None: ...

    def list_access_tokens(self, user: str | None = None) -> list[AccessTokenEntry]: ...

    def save_access_token(self, entry: AccessTokenEntry) -> None: ...

    def drop_access_token(self, token_id: str, *, audit: AuditEntry | None = None) -> None: ...


class Roles(Protocol):
    """Roles, their grants, and which users have them. A role that is dropped takes both with it.

    The `user` of a grant is the name of the role here. Giving what is given and taking what is not changes nothing.
    """

    def create_role(self, entry: RoleEntry, *, audit: AuditEntry | None = None) -> None: ...

    def list_roles(self) -> list[RoleEntry]: ...

    def drop_role(self, name: str, *, audit: AuditEntry | None = None) -> None: ...

    def give_roles(self, roles: Sequence[str], user: str, *, audit: AuditEntry | None = None) -> None: ...

    def take_roles(self, roles: Sequence[str], user: str, *, audit: AuditEntry | None = None) -> None: ...

    def list_members(self) -> list[tuple[str, str]]: ...

    def grant_to_role(self, entries: Sequence[GrantEntry], *, audit: AuditEntry | None = None) -> None: ...

    def revoke_from_role(self, entries: Sequence[GrantEntry], *, audit: AuditEntry | None = None) -> None: ...

    def list_role_grants(self) -> list[GrantEntry]: ...

    def list_grants_through(self, user: str, roles: Sequence[str] = ()) -> list[GrantEntry]: ...


class Leases(Protocol):
    """Services that share the store, and which of them runs which job.

    Laws: a job has one holder at most. It is taken by naming the holder that was seen, so that of two who want it one
    gets it.
    """

    def beat(self, entry: ServiceEntry) -> None: ...

    def list_services(self) -> list[ServiceEntry]: ...

    def check_lease(self, job_id: JobId, service_id: str) -> None: ...

    def list_leases(self) -> dict[JobId, str]: ...

    def take_lease(self, job_id: JobId, service_id: str, *, held_by: str | None) -> bool: ...

    def drop_lease(self, job_id: JobId, service_id: str) -> None: ...

    def forget_service(self, service_id: str) -> None: ...


class MetadataStore(Jobs, BillIndex, Catalog, Catalogs, Audit, Settings, Users, Roles, Leases, Protocol):
    """All of it."""

    @property
    def place(self) -> str: ...

    @property
    def shared_url(self) -> str:
        """The database, with the password, when services on several machines can share it; empty otherwise."""
        ...

    def close(self) -> None: ...
