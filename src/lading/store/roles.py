"""Roles: grants with a name, which users are given as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, delete, or_, select

from lading.errors import ConflictError, NotFoundError
from lading.store.audit import append_entry
from lading.store.database import Database
from lading.store.records import AuditEntry, GrantEntry, RoleEntry
from lading.store.schema import ROLE_GRANTS, ROLES, USER_ROLES
from lading.store.users import expect_user

_LEFT = "Nothing was changed."


class SqlRoles:
    """See `protocols.Roles`. An audit entry is there exactly when its change is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_role(self, entry: RoleEntry, *, audit: AuditEntry | None = None) -> None:
        """Keep a new role. Raises ConflictError."""
        with self._database.write(f"Creating role {entry.name}") as connection:
            columns = {"name": entry.name, "created_at": entry.created_at}
            if not self._database.insert_new(connection, ROLES, columns):
                msg = f"Role '{entry.name}' exists already"
                raise ConflictError(msg, code="UserExists", left=_LEFT, todo="Choose another name.", name=entry.name)
            append_entry(connection, audit)

    def list_roles(self) -> list[RoleEntry]:
        """All roles by name."""
        with self._database.read("Listing roles") as connection:
            rows = connection.execute(select(ROLES)).all()
        return sorted((RoleEntry(name=row.name, created_at=row.created_at) for row in rows), key=lambda it: it.name)

    def drop_role(self, name: str, *, audit: AuditEntry | None = None) -> None:
        """Forget a role; nobody has it any longer. Raises NotFoundError."""
        with self._database.write(f"Dropping role {name}") as connection:
            _expect_role(connection, name)
            connection.execute(delete(ROLES).where(ROLES.c.name == name))
            append_entry(connection, audit)

    def give_roles(self, roles: Sequence[str], user: str, *, audit: AuditEntry | None = None) -> None:
        """Give roles to a user, all of them or none. Raises NotFoundError."""
        with self._database.write("Granting roles") as connection:
            expect_user(connection, user)
            for role in roles:
                _expect_role(connection, role)
                self._database.insert_new(connection, USER_ROLES, {"user_name": user, "role_name": role})
            append_entry(connection, audit)

    def take_roles(self, roles: Sequence[str], user: str, *, audit: AuditEntry | None = None) -> None:
        """Take roles from a user. Raises NotFoundError."""
        with self._database.write("Revoking roles") as connection:
            expect_user(connection, user)
            given = (USER_ROLES.c.user_name == user, USER_ROLES.c.role_name.in_(list(roles)))
            connection.execute(delete(USER_ROLES).where(*given))
            append_entry(connection, audit)

    def list_members(self) -> list[tuple[str, str]]:
        """Which user has which role, by user."""
        with self._database.read("Listing roles of users") as connection:
            rows = connection.execute(select(USER_ROLES)).all()
        return sorted((row.user_name, row.role_name) for row in rows)

    def grant_to_role(self, entries: Sequence[GrantEntry], *, audit: AuditEntry | None = None) -> None:
        """Give privileges to roles, all of them or none. Raises NotFoundError."""
        with self._database.write("Granting privileges") as connection:
            for entry in entries:
                _expect_role(connection, entry.user)
                self._database.insert_new(connection, ROLE_GRANTS, _columns(entry))
            append_entry(connection, audit)

    def revoke_from_role(self, entries: Sequence[GrantEntry], *, audit: AuditEntry | None = None) -> None:
        """Take privileges back, exactly those that were given. Raises NotFoundError."""
        with self._database.write("Revoking privileges") as connection:
            for entry in entries:
                _expect_role(connection, entry.user)
                connection.execute(delete(ROLE_GRANTS).where(*_is_grant(entry)))
            append_entry(connection, audit)

    def list_role_grants(self) -> list[GrantEntry]:
        """What all roles were granted."""
        with self._database.read("Listing privileges of roles") as connection:
            return _entries(connection, None)

    def list_grants_through(self, user: str, roles: Sequence[str] = ()) -> list[GrantEntry]:
        """What a user has through the roles that were granted to it, and through those that are named here."""
        theirs = select(USER_ROLES.c.role_name).where(USER_ROLES.c.user_name == user)
        name = ROLE_GRANTS.c.role_name
        with self._database.read("Listing privileges of roles") as connection:
            return _entries(connection, or_(name.in_(theirs), name.in_(list(roles))))


def no_role(name: str) -> NotFoundError:
    """The error for a role that is not there."""
    return NotFoundError(
        f"There is no role '{name}'", code="UserNotFound", left=_LEFT, todo="See SHOW ROLES.", name=name
    )


def _expect_role(connection: Connection, name: str) -> None:
    # The row is locked, as that of a user is: a role that is dropped meanwhile would otherwise leave something behind.
    if connection.execute(select(ROLES.c.name).where(ROLES.c.name == name).with_for_update()).first() is None:
        raise no_role(name)


def _entries(connection: Connection, which: ColumnElement[bool] | None) -> list[GrantEntry]:
    query = select(ROLE_GRANTS) if which is None else select(ROLE_GRANTS).where(which)
    return sorted(
        GrantEntry(user=row.role_name, privilege=row.privilege, database=row.database, table=row.table_name)
        for row in connection.execute(query).all()
    )


def _is_grant(entry: GrantEntry) -> list[ColumnElement[bool]]:
    return [ROLE_GRANTS.c[name] == value for name, value in _columns(entry).items()]


def _columns(entry: GrantEntry) -> dict[str, object]:
    return {
        "role_name": entry.user,
        "privilege": entry.privilege,
        "database": entry.database,
        "table_name": entry.table,
    }
