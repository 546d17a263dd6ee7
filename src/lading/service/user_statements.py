"""What each statement about users does."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from lading.service.access import Access, Identity
from lading.service.result import Result, done, table
from lading.service.rights import grant_statement
from lading.sql.user_statements import (
    AlterUser,
    CreateToken,
    CreateUser,
    DropToken,
    DropUser,
    Grant,
    Revoke,
    ShowGrants,
    ShowTokens,
    ShowUsers,
    UserStatement,
)
from lading.store.records import AccessTokenEntry

_TOKEN_COLUMNS = ("Id", "User", "Scope", "Created", "Expires", "LastUsed", "Comment")


def execute_user_statement(access: Access, identity: Identity, statement: UserStatement) -> Result:
    """Run one statement for somebody."""
    match statement:
        case CreateUser(name=name, password=password):
            is_new = access.create_user(name, password, by=identity, if_not_exists=statement.if_not_exists)
            return done(f"user '{name}' created" if is_new else f"user '{name}' was there already")
        case AlterUser(name=name, password=password):
            access.set_password(name, password, by=identity)
            return done(f"the password of user '{name}' is set")
        case DropUser(name=name):
            was_there = access.drop_user(name, by=identity, if_exists=statement.if_exists)
            return done(f"user '{name}' dropped" if was_there else f"there was no user '{name}'")
        case Grant():
            access.grant(statement.user, statement.privileges, statement.scope, by=identity)
            return done()
        case Revoke():
            access.revoke(statement.user, statement.privileges, statement.scope, by=identity)
            return done()
        case CreateToken():
            made = access.create_token(
                statement.user, by=identity, comment=statement.comment or "", limits=statement.limits
            )
            return table(("TokenId", "Token", "Expires"), [(made.token_id, made.text, _end(made.expires_at))])
        case DropToken(token_id=token_id):
            access.drop_token(token_id, by=identity)
            return done(f"token {token_id} dropped")
        case ShowGrants() | ShowUsers() | ShowTokens():
            return _show(access, identity, statement)
        case _:
            assert_never(statement)


def _show(access: Access, identity: Identity, statement: ShowGrants | ShowUsers | ShowTokens) -> Result:
    match statement:
        case ShowGrants():
            user = statement.user if statement.user is not None else identity.user
            entries = access.list_grants(user, by=identity)
            return table((f"Grants for {user}",), [(grant_statement(entry),) for entry in entries])
        case ShowUsers():
            users = access.list_users(by=identity)
            rows = [
                (
                    user.name,
                    "Yes" if user.password_hash else "No",
                    str(user.created_at),
                    str(user.password_changed_at or ""),
                )
                for user in users
            ]
            return table(("User", "HasPassword", "CreateTime", "PasswordChangeTime"), rows)
        case ShowTokens():
            tokens = access.list_tokens(by=identity)
            return table(_TOKEN_COLUMNS, [_token_row(token) for token in tokens])
        case _:
            assert_never(statement)


def _token_row(token: AccessTokenEntry) -> tuple[str, ...]:
    return (
        token.token_id,
        token.user,
        token.scope,
        str(token.created_at),
        _end(token.expires_at),
        str(token.last_used_at or ""),
        token.comment,
    )


def _end(expires_at: datetime | None) -> str:
    return str(expires_at) if expires_at is not None else "never"
