"""Statements about users, privileges and access tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Privilege(Enum):
    """What somebody may do. ADMIN includes the others; LOAD and SELECT do not include each other.

    USAGE is about identities alone, and the others never are.
    """

    ADMIN = "ADMIN"
    LOAD = "LOAD"
    SELECT = "SELECT"
    USAGE = "USAGE"


SERVICE_IDENTITY = "service"
"""The cloud identity that the service itself has: its environment, its configuration, the role of its machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where a privilege holds: everywhere, in a database, on one table, or for an identity.

    A table is never without its database, and an identity is in none.
    """

    database: str | None = None
    table: str | None = None
    identity: str | None = None


EVERYWHERE = Scope()
ON_SERVICE_IDENTITY = Scope(identity=SERVICE_IDENTITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivilegesOn:
    """Some privileges at one place."""

    privileges: tuple[Privilege, ...]
    scope: Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenScope:
    """What a token may do at most. It never gives more than its user has."""

    is_read_only: bool = False
    """Everything that the user may see, and no change."""
    parts: tuple[PrivilegesOn, ...] = ()
    """Otherwise: these privileges at these places, and no others."""


READ_ONLY = TokenScope(is_read_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLimits:
    """How long a token is valid and what for."""

    expires_in_days: int | None = None
    """None: as the setting of the service says."""
    never_expires: bool = False
    scope: TokenScope | None = None
    """None: whatever its user may do."""


NO_LIMITS = TokenLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateUser:
    """CREATE USER [IF NOT EXISTS] 'name' [IDENTIFIED BY '…']"""

    name: str
    password: str | None = field(default=None, repr=False)
    """None: nobody can log in with a password until one is set."""
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUser:
    """ALTER USER 'name' IDENTIFIED BY '…'"""

    name: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropUser:
    """DROP USER [IF EXISTS] 'name'"""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """GRANT LOAD, SELECT ON db.table TO ['user' | ROLE 'role'], GRANT USAGE ON IDENTITY service TO …"""

    privileges: tuple[Privilege, ...]
    scope: Scope
    user: str
    """The name of the user, or of the role."""
    is_role: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoke:
    """REVOKE LOAD, SELECT ON db.table FROM ['user' | ROLE 'role']"""

    privileges: tuple[Privilege, ...]
    scope: Scope
    user: str
    """The name of the user, or of the role."""
    is_role: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRole:
    """CREATE ROLE [IF NOT EXISTS] 'role'"""

    name: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRole:
    """DROP ROLE [IF EXISTS] 'role'"""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRole:
    """GRANT 'role', … TO 'user'"""

    roles: tuple[str, ...]
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeRole:
    """REVOKE 'role', … FROM 'user'"""

    roles: tuple[str, ...]
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowRoles:
    """SHOW ROLES"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowGrants:
    """SHOW GRANTS [FOR 'user']"""

    user: str | None = None
    """None: the user who asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowUsers:
    """SHOW USERS"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateToken:
    """CREATE TOKEN FOR 'user' [COMMENT '…'] [EXPIRES IN n DAYS | NEVER EXPIRES] [SCOPE …]"""

    user: str
    comment: str | None = None
    limits: TokenLimits = NO_LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class DropToken:
    """DROP TOKEN 'id'"""

    token_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTokens:
    """SHOW TOKENS"""


RoleStatement = CreateRole | DropRole | GrantRole | RevokeRole | ShowRoles
UserStatement = (
    CreateUser
    | AlterUser
    | DropUser
    | Grant
    | Revoke
    | ShowGrants
    | ShowUsers
    | CreateToken
    | DropToken
    | ShowTokens
    | CreateRole
    | DropRole
    | GrantRole
    | RevokeRole
    | ShowRoles
)
