"""Users, privileges and access tokens."""

from __future__ import annotations

from lading.errors import NotSupportedError, SqlError
from lading.model.names import ALL, INTERNAL, database_key
from lading.sql.statements.users import (
    EVERYWHERE,
    ON_SERVICE_IDENTITY,
    READ_ONLY,
    SERVICE_IDENTITY,
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
    PrivilegesOn,
    Revoke,
    RevokeRole,
    Scope,
    ShowGrants,
    ShowRoles,
    ShowTokens,
    ShowUsers,
    TokenLimits,
    TokenScope,
)
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.names import check_object_name, check_role_name, check_user_name
from lading.sql.syntax.spans import PLACEHOLDERS, Span
from lading.sql.syntax.tokens import Kind

_PRIVILEGES = {word: each for each in Privilege for word in (each.value, f"{each.value}_PRIV")}
MOST_DAYS = 36_500
"""What Doris calls the catalog of its own tables; it may stand before the database."""


def parse_create_user(cursor: Cursor) -> CreateUser:
    """CREATE USER [IF NOT EXISTS] 'name'[@'%'] [IDENTIFIED BY '…']"""
    cursor.expect("CREATE", "USER")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = _user(cursor)
    password = _password(cursor) if cursor.sees("IDENTIFIED") else None
    return CreateUser(name=name, password=password, if_not_exists=if_not_exists)


def parse_alter_user(cursor: Cursor) -> AlterUser:
    """ALTER USER 'name'[@'%'] IDENTIFIED BY '…'"""
    cursor.expect("ALTER", "USER")
    return AlterUser(name=_user(cursor), password=_password(cursor))


def parse_drop_user(cursor: Cursor) -> DropUser:
    """DROP USER [IF EXISTS] 'name'[@'%']"""
    cursor.expect("DROP", "USER")
    if_exists = cursor.accept("IF", "EXISTS")
    return DropUser(name=_user(cursor), if_exists=if_exists)


def parse_grant(cursor: Cursor) -> Grant | GrantRole:
    """GRANT privilege, … ON scope TO ['user'[@'%'] | ROLE 'role'], GRANT 'role', … TO 'user'[@'%']"""
    cursor.expect("GRANT")
    if _sees_role(cursor, "TO"):
        roles = _roles(cursor)
        cursor.expect("TO")
        return GrantRole(roles=roles, user=_user(cursor))
    privileges, scope = _privileges_and_scope(cursor)
    cursor.expect("TO")
    user, is_role = _user_or_role(cursor)
    return Grant(privileges=privileges, scope=scope, user=user, is_role=is_role)


def parse_revoke(cursor: Cursor) -> Revoke | RevokeRole:
    """REVOKE privilege, … ON scope FROM ['user'[@'%'] | ROLE 'role'], REVOKE 'role', … FROM 'user'[@'%']"""
    cursor.expect("REVOKE")
    if _sees_role(cursor, "FROM"):
        roles = _roles(cursor)
        cursor.expect("FROM")
        return RevokeRole(roles=roles, user=_user(cursor))
    privileges, scope = _privileges_and_scope(cursor)
    cursor.expect("FROM")
    user, is_role = _user_or_role(cursor)
    return Revoke(privileges=privileges, scope=scope, user=user, is_role=is_role)


def parse_create_role(cursor: Cursor) -> CreateRole:
    """CREATE ROLE [IF NOT EXISTS] 'role'"""
    cursor.expect("CREATE", "ROLE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    return CreateRole(name=_role(cursor), if_not_exists=if_not_exists)


def parse_drop_role(cursor: Cursor) -> DropRole:
    """DROP ROLE [IF EXISTS] 'role'"""
    cursor.expect("DROP", "ROLE")
    if_exists = cursor.accept("IF", "EXISTS")
    return DropRole(name=_role(cursor), if_exists=if_exists)


def parse_show_roles(cursor: Cursor) -> ShowRoles:
    """SHOW ROLES"""
    cursor.expect("SHOW", "ROLES")
    return ShowRoles()


def parse_show_grants(cursor: Cursor) -> ShowGrants:
    """SHOW GRANTS [FOR 'user'[@'%']]"""
    cursor.expect("SHOW", "GRANTS")
    return ShowGrants(user=_user(cursor) if cursor.accept("FOR") else None)


def parse_show_users(cursor: Cursor) -> ShowUsers:
    """SHOW USERS"""
    cursor.expect("SHOW", "USERS")
    return ShowUsers()


def parse_create_token(cursor: Cursor) -> CreateToken:
    """CREATE TOKEN FOR 'user'[@'%'] [COMMENT '…'] [EXPIRES IN n DAYS | NEVER EXPIRES] [SCOPE FULL | READ ONLY | (…)]"""
    cursor.expect("CREATE", "TOKEN", "FOR")
    user = _user(cursor)
    comment = cursor.string("a comment in quotes") if cursor.accept("COMMENT") else None
    days, never = None, cursor.accept("NEVER", "EXPIRES")
    if not never and cursor.accept("EXPIRES"):
        days = _days(cursor)
    scope = _token_scope(cursor) if cursor.accept("SCOPE") else None
    limits = TokenLimits(expires_in_days=days, never_expires=never, scope=scope)
    return CreateToken(user=user, comment=comment, limits=limits)


def parse_drop_token(cursor: Cursor) -> DropToken:
    """DROP TOKEN id"""
    cursor.expect("DROP", "TOKEN")
    if cursor.token.kind not in (Kind.WORD, Kind.STRING) or not cursor.token.value:
        cursor.fail("the id of a token")
    return DropToken(token_id=cursor.take().value)


def parse_show_tokens(cursor: Cursor) -> ShowTokens:
    """SHOW TOKENS"""
    cursor.expect("SHOW", "TOKENS")
    return ShowTokens()


def parse_token_scope(text: str) -> TokenScope | None:
    """What stands behind SCOPE, as it is kept of a token."""
    return _token_scope(Cursor(text))


def _days(cursor: Cursor) -> int:
    cursor.expect("IN")
    span = cursor.token.span
    days = cursor.number("a number of days")
    if not 1 <= days <= MOST_DAYS:
        msg = f"A token is valid for 1 to {MOST_DAYS} days"
        raise SqlError(msg, place=span, hint="not possible", todo="Write NEVER EXPIRES if it should not end.")
    cursor.choose("DAYS", "DAY")
    return days


def _token_scope(cursor: Cursor) -> TokenScope | None:
    if cursor.accept("FULL"):
        return None
    if cursor.accept("READ", "ONLY"):
        return READ_ONLY
    if not cursor.token.is_symbol("("):
        cursor.fail("FULL", "READ ONLY", "(")
    cursor.take()
    parts = [_privileges_on(cursor)]
    while cursor.accept_symbol(","):
        parts.append(_privileges_on(cursor))
    cursor.expect_symbol(")")
    return TokenScope(parts=tuple(parts))


def _privileges_on(cursor: Cursor) -> PrivilegesOn:
    privileges, scope = _privileges_and_scope(cursor)
    return PrivilegesOn(privileges=privileges, scope=scope)


def _user(cursor: Cursor) -> str:
    """Take name, 'name', `name`, each with @'%' when somebody is used to it."""
    token = cursor.token
    if token.kind not in (Kind.WORD, Kind.QUOTED, Kind.STRING):
        cursor.fail("the name of a user")
    cursor.take()
    check_user_name(token.value, token.span)
    if cursor.accept_symbol("@"):
        _any_host(cursor)
    return token.value


def _user_or_role(cursor: Cursor) -> tuple[str, bool]:
    """Take a user, or ROLE and a role. A user who is called role is written in quotes."""
    if cursor.token.kind is Kind.WORD and cursor.accept("ROLE"):
        return _role(cursor), True
    return _user(cursor), False


def _sees_role(cursor: Cursor, end: str) -> bool:
    """Whether roles come next and not privileges. A role that is called as a privilege is written in quotes."""
    if cursor.token.kind in (Kind.QUOTED, Kind.STRING):
        return True
    is_word = cursor.token.kind is Kind.WORD and cursor.token.upper not in _PRIVILEGES
    return is_word and (cursor.look(1).upper == end or cursor.look(1).is_symbol(","))


def _roles(cursor: Cursor) -> tuple[str, ...]:
    found = [_role(cursor)]
    while cursor.accept_symbol(","):
        found.append(_role(cursor))
    return tuple(dict.fromkeys(found))


def _role(cursor: Cursor) -> str:
    token = cursor.token
    if token.kind not in (Kind.WORD, Kind.QUOTED, Kind.STRING):
        cursor.fail("the name of a role")
    cursor.take()
    check_role_name(token.value, token.span)
    return token.value


def _any_host(cursor: Cursor) -> None:
    token = cursor.token
    if token.kind is Kind.END or token.value != "%":
        msg = "A user is the same wherever they come from; only the host '%' can be written"
        raise NotSupportedError(msg, place=token.span, hint="not supported", todo="Leave the host out.")
    cursor.take()


def _password(cursor: Cursor) -> str:
    cursor.expect("IDENTIFIED", "BY")
    span = cursor.token.span
    password = cursor.string("a password in quotes")
    if not password:
        msg = "The password is empty"
        raise SqlError(msg, place=span, hint="empty", todo="Give at least one letter.")
    if password in PLACEHOLDERS:
        msg = "This is the place of a password, and not a password"
        raise SqlError(msg, place=span, hint="write a password here")
    return password


def _privileges_and_scope(cursor: Cursor) -> tuple[tuple[Privilege, ...], Scope]:
    """Take privileges and what they are for: USAGE is for an identity, the others for tables."""
    start = cursor.token.span.start
    privileges = _privileges(cursor)
    if Privilege.USAGE not in privileges:
        return privileges, _scope(cursor)
    if len(privileges) > 1:
        place = Span(cursor.text, start, cursor.previous.span.end)
        msg = "USAGE is for an identity, and the other privileges are for tables"
        raise SqlError(msg, place=place, hint="not together", todo="Write two statements.")
    return privileges, _identity(cursor)


def _identity(cursor: Cursor) -> Scope:
    """Take ON IDENTITY service: there is no other identity."""
    cursor.expect("ON", "IDENTITY")
    if cursor.token.upper != SERVICE_IDENTITY.upper():
        cursor.fail(SERVICE_IDENTITY)
    cursor.take()
    return ON_SERVICE_IDENTITY


def _privileges(cursor: Cursor) -> tuple[Privilege, ...]:
    found = [_privilege(cursor)]
    while cursor.accept_symbol(","):
        found.append(_privilege(cursor))
    return tuple(each for each in Privilege if each in found)


def _privilege(cursor: Cursor) -> Privilege:
    if cursor.token.upper not in _PRIVILEGES:
        cursor.fail(*(each.value for each in Privilege))
    return _PRIVILEGES[cursor.take().upper]


def _scope(cursor: Cursor) -> Scope:
    """Take *, *.*, db, db.* or db.table; a catalog may stand before the last two, as in lake.*.* and lake.db.table."""
    cursor.expect("ON")
    start = cursor.token.span.start
    parts = [_part(cursor)]
    while cursor.accept_symbol("."):
        parts.append(_part(cursor))
    place = Span(cursor.text, start, cursor.previous.span.end)
    catalog: str | None = None
    if len(parts) == 3 and parts[0] in (None, INTERNAL):
        parts = parts[1:] if parts[0] else _without_star(parts, place)
    elif len(parts) == 3:
        catalog, *parts = parts
    if len(parts) > 2:
        msg = "A privilege holds for *, for db.* or for db.table, with a catalog before it or not"
        raise SqlError(msg, place=place, hint="too many parts")
    database, table = parts[0], parts[1] if len(parts) == 2 else None
    if database is None:
        _without_star(parts, place)
        return EVERYWHERE if catalog is None else Scope(database=database_key(catalog, ALL))
    if catalog is not None and database == ALL:
        msg = f"'{ALL}' cannot be the name of a database"
        raise SqlError(msg, place=place, hint="not a name", todo="Without quotes it means all databases.")
    return Scope(database=database_key(catalog, database), table=table)


def _without_star(parts: list[str | None], place: Span) -> list[str | None]:
    """What follows a star that stands for everything, which can only be stars."""
    if any(part is not None for part in parts):
        msg = "A privilege on a table of any database is not possible"
        raise SqlError(msg, place=place, hint="not possible", todo="Name the database.")
    return parts[1:]


def _part(cursor: Cursor) -> str | None:
    if cursor.accept_symbol("*"):
        return None
    span = cursor.token.span
    name = cursor.identifier("*, a database or a table")
    check_object_name(name, "database or table", span)
    return name
