"""Statements about users to text. Passwords are written out; `mask` the statement first."""

from __future__ import annotations

from typing import assert_never

from lading.model.names import ALL, INTERNAL, split_key
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
    Privilege,
    Revoke,
    RevokeRole,
    RoleStatement,
    Scope,
    ShowGrants,
    ShowRoles,
    ShowTokens,
    ShowUsers,
    TokenLimits,
    TokenScope,
    UserStatement,
)
from lading.sql.syntax.render_parts import comment_text, quoted_name
from lading.sql.syntax.tokens import quote_string


def user_text(it: UserStatement) -> str:
    """The canonical text of a statement about users."""
    match it:
        case CreateUser():
            exists = "IF NOT EXISTS " if it.if_not_exists else ""
            return f"CREATE USER {exists}{_string(it.name)}{_identified(it.password)}"
        case AlterUser():
            return f"ALTER USER {_string(it.name)}{_identified(it.password)}"
        case DropUser():
            return f"DROP USER {'IF EXISTS ' if it.if_exists else ''}{_string(it.name)}"
        case Grant():
            return f"GRANT {_privileges(it.privileges)} ON {scope_text(it.scope)} TO {_receiver(it)}"
        case Revoke():
            return f"REVOKE {_privileges(it.privileges)} ON {scope_text(it.scope)} FROM {_receiver(it)}"
        case CreateRole() | DropRole() | GrantRole() | RevokeRole() | ShowRoles():
            return _role_text(it)
        case ShowGrants():
            return f"SHOW GRANTS FOR {_string(it.user)}" if it.user is not None else "SHOW GRANTS"
        case ShowUsers():
            return "SHOW USERS"
        case CreateToken():
            comment = f" {comment_text(it.comment)}" if it.comment is not None else ""
            return f"CREATE TOKEN FOR {_string(it.user)}{comment}{_limits(it.limits)}"
        case DropToken():
            return f"DROP TOKEN {_string(it.token_id)}"
        case ShowTokens():
            return "SHOW TOKENS"
        case _:
            assert_never(it)


def _role_text(it: RoleStatement) -> str:
    match it:
        case CreateRole():
            return f"CREATE ROLE {'IF NOT EXISTS ' if it.if_not_exists else ''}{_string(it.name)}"
        case DropRole():
            return f"DROP ROLE {'IF EXISTS ' if it.if_exists else ''}{_string(it.name)}"
        case GrantRole():
            return f"GRANT {', '.join(map(_string, it.roles))} TO {_string(it.user)}"
        case RevokeRole():
            return f"REVOKE {', '.join(map(_string, it.roles))} FROM {_string(it.user)}"
        case ShowRoles():
            return "SHOW ROLES"
        case _:
            assert_never(it)


def _receiver(it: Grant | Revoke) -> str:
    return f"ROLE {_string(it.user)}" if it.is_role else _string(it.user)


def scope_text(scope: Scope) -> str:
    """*.*, db.*, db.table, catalog.*.*, catalog.db.table or IDENTITY name"""
    if scope.identity is not None:
        return f"IDENTITY {scope.identity}"
    if scope.database is None:
        return "*.*"
    catalog, database = split_key(scope.database)
    table = quoted_name(scope.table) if scope.table is not None else ALL
    if catalog == INTERNAL:
        return f"{quoted_name(database)}.{table}"
    return f"{quoted_name(catalog)}.{ALL if database == ALL else quoted_name(database)}.{table}"


def token_scope_text(scope: TokenScope | None) -> str:
    """FULL, READ ONLY or (LOAD ON db.table, SELECT ON *.*)"""
    if scope is None:
        return "FULL"
    if scope.is_read_only:
        return "READ ONLY"
    return f"({', '.join(f'{_privileges(part.privileges)} ON {scope_text(part.scope)}' for part in scope.parts)})"


def _limits(limits: TokenLimits) -> str:
    text = " NEVER EXPIRES" if limits.never_expires else ""
    if limits.expires_in_days is not None:
        text = f" EXPIRES IN {limits.expires_in_days} DAYS"
    return f"{text} SCOPE {token_scope_text(limits.scope)}" if limits.scope is not None else text


def _identified(password: str | None) -> str:
    return f" IDENTIFIED BY {_string(password)}" if password is not None else ""


def _privileges(privileges: tuple[Privilege, ...]) -> str:
    return ", ".join(each.value for each in privileges)


def _string(text: str) -> str:
    return quote_string(text, "'")
