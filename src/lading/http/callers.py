"""Who is asking. The users are those of the MySQL face."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from lading.errors import AuthError
from lading.jobs.record import JobRecord
from lading.service.access import Access
from lading.service.guard import sees
from lading.service.rights import Identity, Rights
from lading.sql.user_statements import Privilege

OPEN_USER = "anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody who asks, proven, and what they might do at that moment."""

    user: str
    rights: Rights | None = None
    """None: this service was started without users, and everybody may do everything."""

    def may_see(self, record: JobRecord) -> bool:
        """Whether a job is there for this caller. Without LOAD on its target it is not."""
        return sees(self.rights, record)

    def require_everywhere(self, privilege: Privilege) -> None:
        """Raise DeniedError unless the caller has a privilege on everything."""
        if self.rights is not None:
            self.rights.require(privilege)


def identify(connection: HTTPConnection, access: Access | None) -> Caller:
    """Prove who is asking, by `Authorization: Basic` or `Bearer`. Raises AuthError."""
    if access is None:
        return Caller(user=OPEN_USER)
    identity = _prove(connection, access)
    return Caller(user=identity.user, rights=access.rights(identity))


def _prove(connection: HTTPConnection, access: Access) -> Identity:
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    peer = connection.client.host if connection.client else ""
    match scheme.lower():
        case "basic":
            user, password = _parse_basic(given)
            return access.check_password(user, password, peer=peer)
        case "bearer":
            return access.check_token(given.strip(), peer=peer)
    what = "The request does not say who is asking"
    raise _unproven(what)


def _parse_basic(given: str) -> tuple[str, str]:
    try:
        decoded = base64.b64decode(given.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        what = "The Basic header is not user:password in base64"
        raise _unproven(what) from error
    user, colon, password = decoded.partition(":")
    if not colon:
        what = "The Basic header has no colon between user and password"
        raise _unproven(what)
    return user, password


def _unproven(what: str) -> AuthError:
    return AuthError(what, left="Nothing was changed.", todo="Send a user and password (Basic) or a token (Bearer).")
