"""Who somebody is, and what they may do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from lading.errors import DeniedError
from lading.model.names import INTERNAL, covers, split_key
from lading.service.security.origin import LOCAL, Origin
from lading.sql.statements.users import ON_SERVICE_IDENTITY, SERVICE_IDENTITY, Grant, Privilege, Scope, TokenScope
from lading.sql.syntax.render import render
from lading.store.records import GrantEntry

ROOT_NAME = "root"
_IDENTITY = "/identity"
"""Where grants on identities are kept among those on databases. No name of a database has a slash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUse:
    """A token that somebody showed."""

    token_id: str
    scope: TokenScope | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Somebody who has proven who they are, or who works on the machine itself."""

    user: str
    is_root: bool = False
    created_at: datetime | None = field(default=None, compare=False)
    """When the user was created: another user of the same name is somebody else. None: bound to no account."""
    credential: str = field(default="", compare=False, repr=False)
    """Which password proved it, as `login.credential_of` writes it; a new password ends the login. Empty: a token."""
    roles: tuple[str, ...] = field(default=(), compare=False)
    """Roles that a directory gives, besides those that were granted here."""
    is_from_directory: bool = field(default=False, compare=False)
    """Whether LDAP proved it. It is asked for the roles of the user again and again; they are not in `roles`."""
    token: TokenUse | None = field(default=None, compare=False)
    """The token that proved it, if one did."""
    origin: Origin = field(default=LOCAL, compare=False)
    """From where they came."""

    @property
    def scope(self) -> TokenScope | None:
        """What may be done at most; None: whatever the user may."""
        return self.token.scope if self.token is not None else None


ROOT = Identity(user=ROOT_NAME, is_root=True)
"""The user who opens the home folder itself: the command line and the Python API. No password is asked there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Everything one user may do, read at one moment: for lists, where each line is asked for."""

    identity: Identity
    grants: tuple[GrantEntry, ...] = ()

    def allow(self, privilege: Privilege, database: str | None = None, table: str | None = None) -> bool:
        """Whether the privilege holds there. Without a table: in the whole database; without both: everywhere."""
        return self.identity.is_root or (
            self._in_scope(privilege, database, table)
            and any(
                grant.privilege in (privilege.value, Privilege.ADMIN.value) and _covers(grant, database, table)
                for grant in self.grants
            )
        )

    @property
    def is_read_only(self) -> bool:
        """Whether nothing may be changed, whatever the privileges are."""
        return self.identity.scope is not None and self.identity.scope.is_read_only

    def require_changes(self) -> None:
        """Raise DeniedError when nothing may be changed."""
        if self.is_read_only:
            user = self.identity.user
            msg = f"Changes are denied to user '{user}': the token is READ ONLY"
            todo = "Use a password or a token with another scope."
            raise DeniedError(msg, left="Nothing was changed.", todo=todo, user=user)

    def _in_scope(self, privilege: Privilege, database: str | None, table: str | None) -> bool:
        scope = self.identity.scope
        if scope is None:
            return True
        if scope.is_read_only:
            return privilege is not Privilege.ADMIN
        return any(
            (privilege in part.privileges or Privilege.ADMIN in part.privileges)
            and _is_within(part.scope, database, table)
            for part in scope.parts
        )

    def _scope_touches(self, database: str, table: str | None = None) -> bool:
        """Whether the scope of the token has anything to do with a table, or with something in a database."""
        scope = self.identity.scope
        if scope is None or scope.is_read_only:
            return True
        places = (part.scope for part in scope.parts)
        if table is not None:
            return any(_is_within(place, database, table) for place in places)
        return any(
            place.identity is None and (place.database is None or covers(place.database, database)) for place in places
        )

    def see_database(self, database: str) -> bool:
        """Whether there is anything in this database that concerns the user."""
        return self.identity.is_root or (
            self._scope_touches(database)
            and any(not grant.database or covers(grant.database, database) for grant in self.grants)
        )

    def see_catalog(self, catalog: str) -> bool:
        """Whether there is anything in this catalog that concerns the user."""
        if self.identity.is_root or catalog == INTERNAL:
            return True
        places = {grant.database for grant in self.grants}
        return any(not place or split_key(place)[0] == catalog for place in places) and self._scope_has(catalog)

    def _scope_has(self, catalog: str) -> bool:
        scope = self.identity.scope
        if scope is None or scope.is_read_only:
            return True
        places = (part.scope for part in scope.parts if part.scope.identity is None)
        return any(place.database is None or split_key(place.database)[0] == catalog for place in places)

    def see_table(self, database: str, table: str) -> bool:
        """Whether the user has any privilege on this table."""
        return self.identity.is_root or (
            self._scope_touches(database, table) and any(_covers(grant, database, table) for grant in self.grants)
        )

    def allow_anywhere(self, privilege: Privilege) -> bool:
        """Whether the privilege holds for anything at all, within the scope of the token."""
        named = (privilege.value, Privilege.ADMIN.value)
        return self.identity.is_root or any(
            grant.privilege in named and self._scope_meets(privilege, grant) for grant in self.grants
        )

    def _scope_meets(self, privilege: Privilege, grant: GrantEntry) -> bool:
        """Whether the scope leaves anything of a grant."""
        scope = self.identity.scope
        if scope is None or scope.is_read_only:
            return self._in_scope(privilege, None, None)
        return any(
            (privilege in part.privileges or Privilege.ADMIN in part.privileges) and _overlap(part.scope, grant)
            for part in scope.parts
        )

    def allow_identity(self) -> bool:
        """Whether statements of the user may use the cloud identity of the service."""
        return self.allow(Privilege.USAGE, _IDENTITY, SERVICE_IDENTITY)

    def require_identity(self, why: str) -> None:
        """Raise DeniedError where `allow_identity` says no."""
        if not self.allow_identity():
            user = self.identity.user
            asked = Grant(privileges=(Privilege.USAGE,), scope=ON_SERVICE_IDENTITY, user=user)
            msg = f"USAGE command denied to user '{user}' for IDENTITY {SERVICE_IDENTITY}: {why}"
            todo = f"Write keys in the statement, or somebody with ADMIN on everything can run: {render(asked)}."
            raise DeniedError(msg, left="Nothing was changed.", todo=todo, user=user, privilege=Privilege.USAGE.value)

    def require(
        self, privilege: Privilege, database: str | None = None, table: str | None = None, *, why: str = ""
    ) -> None:
        """Raise DeniedError where `allow` says no."""
        if not self.allow(privilege, database, table):
            raise denied(self.identity.user, privilege, database, table, why=why)


def _covers(grant: GrantEntry, database: str | None, table: str | None) -> bool:
    if not grant.database:
        return True
    return database is not None and covers(grant.database, database) and (not grant.table or grant.table == table)


def _is_within(place: Scope, database: str | None, table: str | None) -> bool:
    if place.identity is not None:
        return (database, table) == (_IDENTITY, place.identity)
    if place.database is None:
        return True
    return database is not None and covers(place.database, database) and (place.table is None or place.table == table)


def _overlap(place: Scope, grant: GrantEntry) -> bool:
    if place.identity is not None:
        return _covers(grant, _IDENTITY, place.identity)
    if not grant.database or place.database is None:
        return True
    same_table = not grant.table or place.table is None or grant.table == place.table
    return (covers(grant.database, place.database) or covers(place.database, grant.database)) and same_table


def denied(
    user: str, privilege: Privilege, database: str | None = None, table: str | None = None, *, why: str = ""
) -> DeniedError:
    """The error for somebody who lacks a privilege, and why it takes one where that is not plain."""
    where, on = "'*.*'", "everything"
    if table is not None:
        where, on = f"table '{database}.{table}'", "table"
    elif database is not None:
        where, on = f"database '{database}'", "database"
    asked = Grant(privileges=(privilege,), scope=Scope(database=database, table=table), user=user)
    msg = f"{privilege.value} command denied to user '{user}' for {where}{f': {why}' if why else ''}"
    todo = f"Somebody with ADMIN on everything can run: {render(asked)}."
    return DeniedError(msg, left="Nothing was changed.", todo=todo, user=user, privilege=privilege.value, on=on)


def grant_entries(user: str, privileges: Sequence[Privilege], scope: Scope) -> list[GrantEntry]:
    """What the store keeps of a GRANT."""
    database, table = (
        (_IDENTITY, scope.identity) if scope.identity is not None else (scope.database or "", scope.table or "")
    )
    return [GrantEntry(user=user, privilege=each.value, database=database, table=table) for each in privileges]


def grant_statement(entry: GrantEntry, *, is_role: bool = False) -> str:
    """A GRANT that gives what the entry says."""
    if entry.database == _IDENTITY:
        scope = Scope(identity=entry.table)
    else:
        scope = Scope(database=entry.database or None, table=entry.table or None)
    return render(Grant(privileges=(Privilege(entry.privilege),), scope=scope, user=entry.user, is_role=is_role))
