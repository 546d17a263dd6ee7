"""What each statement about users does."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from lading.service.result import Result, done, table
from lading.service.security.privileges import grant_statement
from lading.service.security.roles import RoleView
from lading.service.security.users import Access, Identity
from lading.sql.statements.users import (
    AlterUser,
    CreateRole,
    CreateToken,
    CreateUser,
    DropRole,
    DropToken,
    DropUser,
    Grant,
    GrantRole,
    Revoke,
    RevokeRole,
    ShowGrants,
    ShowRoles,
    ShowTokens,
    ShowUsers,
    UserStatement,
)
from lading.sql.syntax.render import render
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
        case Grant() | Revoke() if statement.is_role:
            access.change_role_grants(statement, by=identity)
            return done()
        case Grant():
            access.grant(statement.user, statement.privileges, statement.scope, by=identity)
            return done()
        case Revoke():
            access.revoke(statement.user, statement.privileges, statement.scope, by=identity)
            return done()
        case CreateRole() | DropRole() | GrantRole() | RevokeRole():
            return _change_roles(access, identity, statement)
        case CreateToken():
            made = access.create_token(
                statement.user, by=identity, comment=statement.comment or "", limits=statement.limits
            )
            return table(("TokenId", "Token", "Expires"), [(made.token_id, made.text, _end(made.expires_at))])
        case DropToken(token_id=token_id):
            access.drop_token(token_id, by=identity)
            return done(f"token {token_id} dropped")
        case ShowGrants() | ShowUsers() | ShowTokens() | ShowRoles():
            return _show(access, identity, statement)
        case _:
            assert_never(statement)


def _change_roles(
    access: Access, identity: Identity, statement: CreateRole | DropRole | GrantRole | RevokeRole
) -> Result:
    is_changed = access.change_roles(statement, by=identity)
    match statement:
        case CreateRole(name=name):
            return done(f"role '{name}' created" if is_changed else f"role '{name}' was there already")
        case DropRole(name=name):
            return done(f"role '{name}' dropped" if is_changed else f"there was no role '{name}'")
        case _:
            return done()


def _show(access: Access, identity: Identity, statement: ShowGrants | ShowUsers | ShowTokens | ShowRoles) -> Result:
    match statement:
        case ShowGrants():
            user = statement.user if statement.user is not None else identity.user
            return table((f"Grants for {user}",), [(text,) for text in _grants(access, identity, user)])
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
        case ShowRoles():
            return table(("Name", "Users", "Grants"), [_role_row(role) for role in access.list_roles(by=identity)])
        case _:
            assert_never(statement)


def _grants(access: Access, identity: Identity, user: str) -> list[str]:
    """What a user was granted, which roles, and what comes through each of them."""
    lines = [grant_statement(entry) for entry in access.list_grants(user, by=identity)]
    for role in access.roles_of(user, by=identity):
        lines.append(render(GrantRole(roles=(role.name,), user=user)))
        lines.extend(grant_statement(entry, is_role=True) for entry in role.grants)
    return lines


def _role_row(role: RoleView) -> tuple[str, str, str]:
    grants = "; ".join(grant_statement(entry, is_role=True) for entry in role.grants)
    return role.name, ", ".join(role.users), grants


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
