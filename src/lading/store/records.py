"""What the store keeps besides jobs and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lading.ids import Incarnation, JobId, Token
from lading.jobs.record import JobRecord
from lading.model.bill import Bill, BillKind, Head
from lading.model.table import TableSpec
from lading.model.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A record as it was read. A save names the version, so that nothing is overwritten unseen."""

    record: JobRecord
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseEntry:
    """A name for tables and routine loads."""

    name: str
    comment: str = ""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A catalog that others keep. What it has is asked of it, each time."""

    name: str
    catalog_id: int
    """Its number in SHOW CATALOGS, which stays when it is renamed."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """As CREATE and ALTER wrote them. Secrets are sealed apart, and references such as `env:NAME` stay."""
    comment: str = ""
    created_at: datetime
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """Where a table is. Its columns, rows and heads are in the table itself."""

    database: str
    name: str
    format: str
    """delta or iceberg."""
    location: str
    catalog: str = ""
    """Name of the catalog; empty for tables that need none."""
    spec: TableSpec | None = None
    """What CREATE TABLE said; None for a table that was there before."""
    is_adopted: bool = False
    """It was there before, and others look after it: DROP TABLE forgets it and deletes nothing."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceEntry:
    """A service that shares the store."""

    service_id: str
    """Its incarnation."""
    host: str
    pid: int
    home: str
    started_at: datetime
    home_id: str = ""
    """Tells its home from others, also from one of the same path on a machine of the same name."""
    dead_after_s: float = 8.0
    """For so long the others wait for a sign of life."""
    is_passing: bool = False
    """A command that makes a job: it runs none."""
    beat: int = 0
    """Goes up while it lives. Nobody compares clocks: those who look see whether it changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BillEntry:
    """What the index keeps of a bill."""

    job_id: JobId
    seq: int
    epoch: int
    token: Token
    kind: BillKind
    incarnation: Incarnation
    planned_at: datetime
    billed_at: datetime
    tally: Tally
    totals: Tally

    @property
    def head(self) -> Head:
        return Head(seq=self.seq, token=self.token)


def entry_of(bill: Bill) -> BillEntry:
    """The part of a bill that is indexed."""
    return BillEntry(
        job_id=bill.job_id,
        seq=bill.seq,
        epoch=bill.epoch,
        token=bill.token,
        kind=bill.kind,
        incarnation=bill.incarnation,
        planned_at=bill.planned_at,
        billed_at=bill.billed_at,
        tally=bill.tally,
        totals=bill.totals,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One change that a person asked for."""

    at: datetime
    user: str
    action: str
    """CREATE, ALTER, PAUSE, RESUME, STOP, DROP, …"""
    job_id: JobId | None = None
    subject: str = ""
    """The name of what was changed."""
    statement: str = ""
    """The SQL text; secrets are left out."""
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEntry:
    """Somebody who may log in. What is kept of the password does not give it back."""

    name: str
    password_hash: str = field(default="", repr=False)
    """Argon2, with its salt and costs. Empty: no password is set."""
    native_verifier: str = field(default="", repr=False)
    """What mysql_native_password is checked against, sealed with the key of the home."""
    sha2_verifier: str = field(default="", repr=False)
    """What caching_sha2_password is checked against, sealed as well. Empty: the password itself has to be asked for."""
    created_at: datetime
    password_changed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleEntry:
    """A name for privileges that users are given as a whole."""

    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class GrantEntry:
    """One privilege of one user or role."""

    user: str
    """Its name; among the grants of roles, that of a role."""
    privilege: str
    """ADMIN, LOAD, SELECT or USAGE."""
    database: str = ""
    """Empty: all of them. `/identity`, which no database is called: `table` is the name of an identity."""
    table: str = ""
    """Empty: all of the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessTokenEntry:
    """A bearer token of a user. The token itself was shown once and is not kept."""

    token_id: str
    user: str
    digest: str = field(repr=False)
    comment: str = ""
    scope: str = "FULL"
    """What it may do at most, as CREATE TOKEN writes it."""
    created_at: datetime
    expires_at: datetime | None = None
    """None: never."""
    last_used_at: datetime | None = None
    """To about a minute; None: not since this is written down."""
