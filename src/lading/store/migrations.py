"""How the tables of the store came to be. A migration that was released is never changed; a new one is added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from lading.store.rewrites import rewrite_jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step. `{serial}` stands for a primary key that counts up by itself."""

    version: int
    name: str
    statements: tuple[str, ...] = ()
    rewrite: Callable[[Connection], None] | None = None
    """What is done after the statements, where SQL alone cannot do it."""


SERIAL = {
    "sqlite": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
    "postgresql": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
}

FIRST = Migration(
    version=1,
    name="first",
    statements=(
        """
        CREATE TABLE lading_migrations (
            version INTEGER NOT NULL PRIMARY KEY,
            name TEXT NOT NULL,
            applied_at TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE lading_settings (
            key TEXT NOT NULL PRIMARY KEY,
            value TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE lading_databases (
            name TEXT NOT NULL PRIMARY KEY,
            created_at TEXT NOT NULL,
            body TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE lading_tables (
            database TEXT NOT NULL REFERENCES lading_databases (name),
            name TEXT NOT NULL,
            format TEXT NOT NULL,
            location TEXT NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (database, name)
        )
        """,
        # live_key is the name of a job that is not final, and null afterwards: a unique index lets many nulls stand.
        """
        CREATE TABLE lading_jobs (
            job_id TEXT NOT NULL PRIMARY KEY,
            name TEXT NOT NULL,
            database TEXT NOT NULL,
            kind TEXT NOT NULL,
            state TEXT NOT NULL,
            live_key TEXT UNIQUE,
            version BIGINT NOT NULL,
            created_at TEXT NOT NULL,
            ended_at TEXT,
            body TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE lading_tasks (
            job_id TEXT NOT NULL REFERENCES lading_jobs (job_id) ON DELETE CASCADE,
            task_id BIGINT NOT NULL,
            state TEXT NOT NULL,
            created_at TEXT NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (job_id, task_id)
        )
        """,
        # No reference to jobs: after the store was lost, bills are followed before the names are known again.
        """
        CREATE TABLE lading_bills (
            job_id TEXT NOT NULL,
            seq BIGINT NOT NULL,
            epoch BIGINT NOT NULL,
            token BIGINT NOT NULL,
            kind TEXT NOT NULL,
            billed_at TEXT NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (job_id, seq)
        )
        """,
        """
        CREATE TABLE lading_error_samples (
            job_id TEXT NOT NULL,
            seq BIGINT NOT NULL,
            number INTEGER NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (job_id, seq, number)
        )
        """,
        """
        CREATE TABLE lading_audit (
            entry_id {serial},
            at TEXT NOT NULL,
            job_id TEXT,
            body TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE lading_leases (
            name TEXT NOT NULL PRIMARY KEY,
            owner TEXT NOT NULL,
            until TEXT NOT NULL,
            fence BIGINT NOT NULL
        )
        """,
    ),
)

USERS = Migration(
    version=2,
    name="users",
    statements=(
        """
        CREATE TABLE lading_users (
            name TEXT NOT NULL PRIMARY KEY,
            created_at TEXT NOT NULL,
            body TEXT NOT NULL
        )
        """,
        # An empty name of a database or table means all of them: nothing can have that name.
        """
        CREATE TABLE lading_grants (
            user_name TEXT NOT NULL REFERENCES lading_users (name) ON DELETE CASCADE,
            privilege TEXT NOT NULL,
            database TEXT NOT NULL,
            table_name TEXT NOT NULL,
            PRIMARY KEY (user_name, privilege, database, table_name)
        )
        """,
        """
        CREATE TABLE lading_access_tokens (
            token_id TEXT NOT NULL PRIMARY KEY,
            user_name TEXT NOT NULL REFERENCES lading_users (name) ON DELETE CASCADE,
            created_at TEXT NOT NULL,
            body TEXT NOT NULL
        )
        """,
    ),
)

ROLES = Migration(
    version=3,
    name="roles",
    statements=(
        """
        CREATE TABLE lading_roles (
            name TEXT NOT NULL PRIMARY KEY,
            created_at TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE lading_role_grants (
            role_name TEXT NOT NULL REFERENCES lading_roles (name) ON DELETE CASCADE,
            privilege TEXT NOT NULL,
            database TEXT NOT NULL,
            table_name TEXT NOT NULL,
            PRIMARY KEY (role_name, privilege, database, table_name)
        )
        """,
        """
        CREATE TABLE lading_user_roles (
            user_name TEXT NOT NULL REFERENCES lading_users (name) ON DELETE CASCADE,
            role_name TEXT NOT NULL REFERENCES lading_roles (name) ON DELETE CASCADE,
            PRIMARY KEY (user_name, role_name)
        )
        """,
    ),
)

NO_SAMPLES = Migration(
    version=4,
    name="no samples",
    # Nothing ever wrote them: bad rows are read from the quarantine files that bills name.
    statements=("DROP TABLE lading_error_samples",),
)

NO_LEASES = Migration(
    version=5,
    name="no leases",
    # Nothing ever took one: what keeps two services apart is the commit of the table.
    statements=("DROP TABLE lading_leases",),
)

LOAD_SPECS = Migration(
    version=6,
    name="load specs",
    # Jobs were kept as the text of their statement, which was parsed whenever one was opened or shown.
    rewrite=rewrite_jobs,
)

MAPPING_FORMS = Migration(
    version=7,
    name="mapping forms",
    # Whether columns are those of SELECT or of COLUMNS was told by the kind of the job.
    rewrite=rewrite_jobs,
)

SERVICES = Migration(
    version=8,
    name="services",
    # Several services may share a store: each says that it is alive, and which jobs it runs.
    statements=(
        "CREATE TABLE lading_services (service_id TEXT NOT NULL PRIMARY KEY, beat BIGINT NOT NULL, body TEXT NOT NULL)",
        "CREATE TABLE lading_leases (job_id TEXT NOT NULL PRIMARY KEY, service_id TEXT NOT NULL)",
    ),
)

CATALOGS = Migration(
    version=9,
    name="catalogs",
    # Tables were those of the home's own catalog; it is one among others now.
    statements=(
        "CREATE TABLE lading_catalogs (name TEXT NOT NULL PRIMARY KEY, created_at TEXT NOT NULL, body TEXT NOT NULL)",
    ),
)

ALL_MIGRATIONS: tuple[Migration, ...] = (
    FIRST,
    USERS,
    ROLES,
    NO_SAMPLES,
    NO_LEASES,
    LOAD_SPECS,
    MAPPING_FORMS,
    SERVICES,
    CATALOGS,
)
