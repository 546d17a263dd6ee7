"""The tables of the store as queries see them. They are made by `migrations.py`; a test compares the two."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, Column, Integer, MetaData, Table, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator


class UtcTime(TypeDecorator[datetime]):
    """A point in time as ISO text in UTC, always of the same length: it sorts as it should, in both databases."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        return None if value is None else value.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


METADATA = MetaData()

MIGRATIONS = Table(
    "lading_migrations",
    METADATA,
    Column("version", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("applied_at", UtcTime, nullable=False),
)

SETTINGS = Table(
    "lading_settings",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

DATABASES = Table(
    "lading_databases",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("created_at", UtcTime, nullable=False),
    Column("body", Text, nullable=False),
)

CATALOGS = Table(
    "lading_catalogs",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("created_at", UtcTime, nullable=False),
    Column("body", Text, nullable=False),
)

TABLES = Table(
    "lading_tables",
    METADATA,
    Column("database", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("format", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("body", Text, nullable=False),
)

JOBS = Table(
    "lading_jobs",
    METADATA,
    Column("job_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("database", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("live_key", Text),
    Column("version", BigInteger, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("body", Text, nullable=False),
)

TASKS = Table(
    "lading_tasks",
    METADATA,
    Column("job_id", Text, primary_key=True),
    Column("task_id", BigInteger, primary_key=True),
    Column("state", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("body", Text, nullable=False),
)

BILLS = Table(
    "lading_bills",
    METADATA,
    Column("job_id", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("billed_at", UtcTime, nullable=False),
    Column("body", Text, nullable=False),
)

AUDIT = Table(
    "lading_audit",
    METADATA,
    Column("entry_id", BigInteger, primary_key=True),
    Column("at", UtcTime, nullable=False),
    Column("job_id", Text),
    Column("body", Text, nullable=False),
)

SERVICES = Table(
    "lading_services",
    METADATA,
    Column("service_id", Text, primary_key=True),
    Column("beat", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
)

LEASES = Table(
    "lading_leases",
    METADATA,
    Column("job_id", Text, primary_key=True),
    Column("service_id", Text, nullable=False),
)

USERS = Table(
    "lading_users",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("created_at", UtcTime, nullable=False),
    Column("body", Text, nullable=False),
)

GRANTS = Table(
    "lading_grants",
    METADATA,
    Column("user_name", Text, primary_key=True),
    Column("privilege", Text, primary_key=True),
    Column("database", Text, primary_key=True),
    Column("table_name", Text, primary_key=True),
)

ROLES = Table(
    "lading_roles",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("created_at", UtcTime, nullable=False),
)

ROLE_GRANTS = Table(
    "lading_role_grants",
    METADATA,
    Column("role_name", Text, primary_key=True),
    Column("privilege", Text, primary_key=True),
    Column("database", Text, primary_key=True),
    Column("table_name", Text, primary_key=True),
)

USER_ROLES = Table(
    "lading_user_roles",
    METADATA,
    Column("user_name", Text, primary_key=True),
    Column("role_name", Text, primary_key=True),
)

ACCESS_TOKENS = Table(
    "lading_access_tokens",
    METADATA,
    Column("token_id", Text, primary_key=True),
    Column("user_name", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("body", Text, nullable=False),
)
