"""Who somebody is, and what they may do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from lading.errors import DeniedError
from lading.sql.render import render
from lading.sql.user_statements import Grant, Privilege, Scope
from lading.store.records import GrantEntry

ROOT_NAME = "root"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Somebody who has proven who they are, or who works on the machine itself."""

    user: str
    is_root: bool = False
    created_at: datetime | None = field(default=None, compare=False)
    """When the user was created: another user of the same name is somebody else. None: bound to no account."""
    credential: str = field(default="", compare=False, repr=False)
    """Which password proved it, as `Login.credential_of` writes it; a new password ends the login. Empty: a token."""


ROOT = Identity(user=ROOT_NAME, is_root=True)
"""Whoever opens the home folder itself: the command line and the Python API. No password is asked there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Everything one user may do, read at one moment: for lists, where each line is asked for."""

    identity: Identity
    grants: tuple[GrantEntry, ...] = ()

    def allow(self, privilege: Privilege, database: str | None = None, table: str | None = None) -> bool:
        """Whether the privilege holds there. Without a table: in the whole database; without both: everywhere."""
        return self.identity.is_root or any(
            grant.privilege in (privilege.value, Privilege.ADMIN.value) and _covers(grant, database, table)
            for grant in self.grants
        )

    def see_database(self, database: str) -> bool:
        """Whether there is anything in this database that concerns the user."""
        return self.identity.is_root or any(grant.database in ("", database) for grant in self.grants)

    def see_table(self, database: str, table: str) -> bool:
        """Whether the user has any privilege on this table."""
        return self.identity.is_root or any(_covers(grant, database, table) for grant in self.grants)

    def require(
        self, privilege: Privilege, database: str | None = None, table: str | None = None, *, why: str = ""
    ) -> None:
        """Raise DeniedError where `allow` says no."""
        if not self.allow(privilege, database, table):
            raise denied(self.identity.user, privilege, database, table, why=why)


def _covers(grant: GrantEntry, database: str | None, table: str | None) -> bool:
    if not grant.database:
        return True
    return grant.database == database and (not grant.table or grant.table == table)


def denied(
    user: str, privilege: Privilege, database: str | None = None, table: str | None = None, *, why: str = ""
) -> DeniedError:
    """The error for somebody who lacks a privilege, and why it takes one where that is not plain."""
    where = "'*.*'"
    if database is not None:
        where = f"table '{database}.{table}'" if table is not None else f"database '{database}'"
    asked = Grant(privileges=(privilege,), scope=Scope(database=database, table=table), user=user)
    msg = f"{privilege.value} command denied to user '{user}' for {where}{f': {why}' if why else ''}"
    todo = f"Somebody with ADMIN on everything can run: {render(asked)}."
    return DeniedError(msg, left="Nothing was changed.", todo=todo, user=user, privilege=privilege.value)


def grant_entries(user: str, privileges: Sequence[Privilege], scope: Scope) -> list[GrantEntry]:
    """What the store keeps of a GRANT."""
    return [
        GrantEntry(user=user, privilege=each.value, database=scope.database or "", table=scope.table or "")
        for each in privileges
    ]


def grant_statement(entry: GrantEntry) -> str:
    """A GRANT that gives what the entry says."""
    scope = Scope(database=entry.database or None, table=entry.table or None)
    return render(Grant(privileges=(Privilege(entry.privilege),), scope=scope, user=entry.user))
