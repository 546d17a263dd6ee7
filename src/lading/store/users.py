"""Users, their grants and their access tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, select, update

from lading.errors import ConflictError, NotFoundError
from lading.store.audit import append_entry
from lading.store.bodies import parse_body, render_body
from lading.store.database import Database
from lading.store.records import AccessTokenEntry, AuditEntry, GrantEntry, UserEntry
from lading.store.schema import ACCESS_TOKENS, GRANTS, USERS

_LEFT = "Nothing was changed."


class SqlUsers:
    """See `protocols.Users`. An audit entry is there exactly when its change is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_user(self, entry: UserEntry, *, audit: AuditEntry | None = None) -> None:
        """Keep a new user. Raises ConflictError."""
        with self._database.write(f"Creating user {entry.name}") as connection:
            if not self._database.insert_new(connection, USERS, _user_columns(entry)):
                msg = f"User '{entry.name}' exists already"
                raise ConflictError(msg, code="UserExists", left=_LEFT, todo="Choose another name.", name=entry.name)
            append_entry(connection, audit)

    def save_user(self, entry: UserEntry, *, audit: AuditEntry | None = None) -> None:
        """Replace what is kept of a user. Raises NotFoundError."""
        with self._database.write(f"Saving user {entry.name}") as connection:
            expect_user(connection, entry.name)
            self._database.put(connection, USERS, _user_columns(entry))
            append_entry(connection, audit)

    def find_user(self, name: str) -> UserEntry | None:
        """A user by name, or None."""
        with self._database.read("Looking for a user") as connection:
            body = connection.execute(select(USERS.c.body).where(USERS.c.name == name)).scalar_one_or_none()
        return None if body is None else parse_body(UserEntry, body, where=f"User {name}")

    def list_users(self) -> list[UserEntry]:
        """All users by name."""
        with self._database.read("Listing users") as connection:
            rows = connection.execute(select(USERS.c.name, USERS.c.body)).all()
        # Sorted here, as grants are: the two databases compare text differently.
        return [parse_body(UserEntry, row.body, where=f"User {row.name}") for row in sorted(rows, key=_name)]

    def drop_user(self, name: str, *, audit: AuditEntry | None = None) -> None:
        """Forget a user with all grants and tokens. Raises NotFoundError."""
        with self._database.write(f"Dropping user {name}") as connection:
            expect_user(connection, name)
            connection.execute(delete(USERS).where(USERS.c.name == name))
            append_entry(connection, audit)

    def grant(self, entries: Sequence[GrantEntry], *, audit: AuditEntry | None = None) -> None:
        """Give privileges, all of them or none. Raises NotFoundError."""
        with self._database.write("Granting privileges") as connection:
            for entry in entries:
                expect_user(connection, entry.user)
                self._database.insert_new(connection, GRANTS, _grant_columns(entry))
            append_entry(connection, audit)

    def revoke(self, entries: Sequence[GrantEntry], *, audit: AuditEntry | None = None) -> None:
        """Take privileges back, exactly those that were given. Raises NotFoundError."""
        with self._database.write("Revoking privileges") as connection:
            for entry in entries:
                expect_user(connection, entry.user)
                connection.execute(delete(GRANTS).where(*_is_grant(entry)))
            append_entry(connection, audit)

    def list_grants(self, user: str | None = None) -> list[GrantEntry]:
        """Grants of one user, or of all, in order."""
        query = select(GRANTS)
        if user is not None:
            query = query.where(GRANTS.c.user_name == user)
        with self._database.read("Listing grants") as connection:
            rows = connection.execute(query).all()
        return sorted(
            GrantEntry(user=row.user_name, privilege=row.privilege, database=row.database, table=row.table_name)
            for row in rows
        )

    def create_access_token(self, entry: AccessTokenEntry, *, audit: AuditEntry | None = None) -> None:
        """Keep a token. Raises NotFoundError."""
        with self._database.write(f"Creating a token for user {entry.user}") as connection:
            expect_user(connection, entry.user)
            if not self._database.insert_new(connection, ACCESS_TOKENS, _token_columns(entry)):
                msg = f"Token {entry.token_id} exists already"
                raise ConflictError(msg, code="UserExists", left=_LEFT, todo="Try again.", token_id=entry.token_id)
            append_entry(connection, audit)

    def find_access_token(self, token_id: str) -> AccessTokenEntry | None:
        """A token by its id, or None."""
        query = select(ACCESS_TOKENS.c.body).where(ACCESS_TOKENS.c.token_id == token_id)
        with self._database.read("Looking for a token") as connection:
            body = connection.execute(query).scalar_one_or_none()
        return None if body is None else parse_body(AccessTokenEntry, body, where=f"Token {token_id}")

    def list_access_tokens(self, user: str | None = None) -> list[AccessTokenEntry]:
        """Tokens of one user, or of all, oldest first."""
        query = select(ACCESS_TOKENS).order_by(ACCESS_TOKENS.c.created_at, ACCESS_TOKENS.c.token_id)
        if user is not None:
            query = query.where(ACCESS_TOKENS.c.user_name == user)
        with self._database.read("Listing tokens") as connection:
            rows = connection.execute(query).all()
        return [parse_body(AccessTokenEntry, row.body, where=f"Token {row.token_id}") for row in rows]

    def save_access_token(self, entry: AccessTokenEntry) -> None:
        """Replace what is kept of a token. One that was dropped meanwhile does not come back."""
        with self._database.write(f"Saving token {entry.token_id}") as connection:
            kept = ACCESS_TOKENS.c.token_id == entry.token_id
            connection.execute(update(ACCESS_TOKENS).where(kept).values(body=render_body(entry)))

    def drop_access_token(self, token_id: str, *, audit: AuditEntry | None = None) -> None:
        """Forget a token. Raises NotFoundError."""
        with self._database.write(f"Dropping token {token_id}") as connection:
            if connection.execute(delete(ACCESS_TOKENS).where(ACCESS_TOKENS.c.token_id == token_id)).rowcount != 1:
                raise no_token(token_id)
            append_entry(connection, audit)


def no_user(name: str) -> NotFoundError:
    """The error for a user that is not there."""
    return NotFoundError(
        f"There is no user '{name}'", code="UserNotFound", left=_LEFT, todo="See SHOW USERS.", name=name
    )


def no_token(token_id: str) -> NotFoundError:
    """The error for a token that is not there."""
    msg = f"There is no token '{token_id}'"
    return NotFoundError(msg, code="UserNotFound", left=_LEFT, todo="See SHOW TOKENS.", token_id=token_id)


def expect_user(connection: Connection, name: str) -> None:
    """Raises NotFoundError. Nobody drops the user until the transaction has ended."""
    # The row is locked: in PostgreSQL, a user that is dropped meanwhile would otherwise come back.
    if connection.execute(select(USERS.c.name).where(USERS.c.name == name).with_for_update()).first() is None:
        raise no_user(name)


def _name(row: Any) -> str:
    return str(row.name)


def _is_grant(entry: GrantEntry) -> list[ColumnElement[bool]]:
    return [GRANTS.c[name] == value for name, value in _grant_columns(entry).items()]


def _user_columns(entry: UserEntry) -> dict[str, object]:
    return {"name": entry.name, "created_at": entry.created_at, "body": render_body(entry)}


def _grant_columns(entry: GrantEntry) -> dict[str, object]:
    return {
        "user_name": entry.user,
        "privilege": entry.privilege,
        "database": entry.database,
        "table_name": entry.table,
    }


def _token_columns(entry: AccessTokenEntry) -> dict[str, object]:
    return {
        "token_id": entry.token_id,
        "user_name": entry.user,
        "created_at": entry.created_at,
        "body": render_body(entry),
    }
