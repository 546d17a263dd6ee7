"""The caller of a request. The users are those of the MySQL face."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

from lading.errors import AuthError
from lading.jobs.record import JobRecord
from lading.service.security.authorization import sees
from lading.service.security.privileges import Rights
from lading.sql.statements.users import Privilege

OPEN_USER = "anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody who asks, proven, and what they might do at that moment."""

    user: str
    peer: str = ""
    """The address that the request came from."""
    rights: Rights | None = None
    """None: this service was started without users, and everybody may do everything."""

    def may_see(self, record: JobRecord) -> bool:
        """Whether a job is there for this caller. Without LOAD on its target it is not."""
        return sees(self.rights, record)

    def require_everywhere(self, privilege: Privilege) -> None:
        """Raise DeniedError unless the caller has a privilege on everything."""
        if self.rights is not None:
            self.rights.require(privilege)


@dataclass(frozen=True, slots=True, kw_only=True)
class Password:
    """What `Authorization: Basic` says."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerToken:
    """What `Authorization: Bearer` says."""

    text: str = field(repr=False)


def parse_proof(header: str) -> Password | BearerToken:
    """The credentials of a request. Raises AuthError when it has none that can be checked."""
    scheme, _, given = header.partition(" ")
    match scheme.lower():
        case "basic":
            return _parse_basic(given)
        case "bearer":
            return BearerToken(text=given.strip())
    what = "The request has no credentials"
    raise _unproven(what)


def _parse_basic(given: str) -> Password:
    try:
        decoded = base64.b64decode(given.strip(), validate=True).decode()
    except ValueError as error:  # Not base64, not even ASCII, or not UTF-8 inside.
        what = "The Basic header is not user:password in base64"
        raise _unproven(what) from error
    user, colon, password = decoded.partition(":")
    if not colon:
        what = "The Basic header has no colon between user and password"
        raise _unproven(what)
    return Password(user=user, password=password)


def _unproven(what: str) -> AuthError:
    return AuthError(what, left="Nothing was changed.", todo="Send a user and password (Basic) or a token (Bearer).")
