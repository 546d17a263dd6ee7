"""Roles: who has them, and what they give. A role contains privileges and no other role."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lading.clock import Clock
from lading.errors import ConfigError, ConflictError
from lading.service.security.privileges import ROOT_NAME, Identity, grant_entries
from lading.sql.statements.users import CreateRole, DropRole, Grant, GrantRole, Revoke, RevokeRole, UserStatement
from lading.sql.syntax.names import check_role_name
from lading.sql.syntax.render import render
from lading.store.protocols import MetadataStore
from lading.store.records import AuditEntry, GrantEntry, RoleEntry
from lading.store.roles import no_role

_LEFT = "Nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleView:
    """A role, who has it, and what it gives."""

    name: str
    users: tuple[str, ...]
    grants: tuple[GrantEntry, ...]


class Roles:
    """Changes of roles. The caller has checked the privilege; each change is audited with its effect."""

    def __init__(
        self, store: MetadataStore, clock: Clock, audit: Callable[[Identity, str, UserStatement], AuditEntry]
    ) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit

    def create(self, statement: CreateRole, *, by: Identity) -> bool:
        """Make a role. Says whether it is new."""
        check_role_name(statement.name)
        entry = RoleEntry(name=statement.name, created_at=self._clock.now())
        try:
            self._store.create_role(entry, audit=self._audit(by, statement.name, statement))
        except ConflictError:
            if not statement.if_not_exists:
                raise
            return False
        return True

    def drop(self, statement: DropRole, *, by: Identity) -> bool:
        """Take a role from everybody and forget it. Says whether there was one."""
        if statement.if_exists and statement.name not in self._names():
            return False
        self._store.drop_role(statement.name, audit=self._audit(by, statement.name, statement))
        return True

    def give(self, statement: GrantRole, *, by: Identity) -> None:
        """Give roles to a user."""
        refuse_root(statement.user)
        self._store.give_roles(statement.roles, statement.user, audit=self._audit(by, statement.user, statement))

    def take(self, statement: RevokeRole, *, by: Identity) -> None:
        """Take roles from a user. Raises ConfigError when one of them was not given."""
        refuse_root(statement.user)
        for role in statement.roles:
            if role not in self.of(statement.user):
                msg = f"User '{statement.user}' was not granted the role '{role}'"
                raise ConfigError(msg, left=_LEFT, todo=f"See SHOW GRANTS FOR '{statement.user}'.")
        self._store.take_roles(statement.roles, statement.user, audit=self._audit(by, statement.user, statement))

    def grant(self, statement: Grant, *, by: Identity) -> None:
        """Give privileges to a role."""
        entries = grant_entries(statement.user, statement.privileges, statement.scope)
        self._store.grant_to_role(entries, audit=self._audit(by, statement.user, statement))

    def revoke(self, statement: Revoke, *, by: Identity) -> None:
        """Take privileges from a role. Raises ConfigError when one of them was not given for exactly this scope."""
        if statement.user not in self._names():
            raise no_role(statement.user)
        entries = grant_entries(statement.user, statement.privileges, statement.scope)
        if missing := set(entries) - set(self._store.list_role_grants()):
            what = ", ".join(sorted(entry.privilege for entry in missing))
            msg = f"Role '{statement.user}' was not granted {what} on exactly this: {render(statement)}"
            raise ConfigError(msg, left=_LEFT, todo="See SHOW ROLES.")
        self._store.revoke_from_role(entries, audit=self._audit(by, statement.user, statement))

    def of(self, user: str) -> tuple[str, ...]:
        """The roles that were granted to a user."""
        return tuple(role for member, role in self._store.list_members() if member == user)

    def views(self) -> list[RoleView]:
        """All roles by name."""
        members, grants = self._store.list_members(), self._store.list_role_grants()
        return [
            RoleView(
                name=role.name,
                users=tuple(user for user, its in members if its == role.name),
                grants=tuple(entry for entry in grants if entry.user == role.name),
            )
            for role in self._store.list_roles()
        ]

    def _names(self) -> Sequence[str]:
        return [role.name for role in self._store.list_roles()]


def refuse_root(user: str) -> None:
    """Nothing is given to root or taken from it. Raises ConfigError."""
    if user == ROOT_NAME:
        msg = f"User '{ROOT_NAME}' has every privilege, always"
        raise ConfigError(msg, left=_LEFT, todo="Make another user for people who should have fewer.")
