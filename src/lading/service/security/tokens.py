"""Bearer tokens: how long they are valid, what for, and when they were used."""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lading.clock import Clock
from lading.errors import AuthError, DeniedError, StoreError
from lading.service.security.privileges import Identity, TokenUse
from lading.sql.statements.users import TokenLimits
from lading.sql.syntax.parse_user import parse_token_scope
from lading.sql.syntax.render_user import token_scope_text
from lading.store.protocols import MetadataStore
from lading.store.records import AccessTokenEntry

USE_NOTED_EVERY_S = 60.0
MOST_NOTED = 10_000
_LEFT = "Nothing was changed."
_log = logging.getLogger("lading.access")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAccessToken:
    """A token that was made now. This is the only time that its text is known."""

    token_id: str
    text: str = field(repr=False)
    expires_at: datetime | None = None


def token_digest(text: str) -> str:
    """What is kept of a bearer token."""
    # A token is 256 random bits: there is nothing that a slow hash would protect.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def draw_token() -> tuple[str, str]:
    """The id and the text of a new token."""
    token_id = "t" + secrets.token_hex(6)
    return token_id, f"lading_{token_id}_{secrets.token_urlsafe(32)}"


def new_entry(
    token_id: str,
    text: str,
    *,
    user: str,
    comment: str,
    limits: TokenLimits,
    lifetime: tuple[datetime, datetime | None],
) -> AccessTokenEntry:
    """What is kept of a new token. The lifetime is when it was made and when it ends."""
    return AccessTokenEntry(
        token_id=token_id,
        user=user,
        digest=token_digest(text),
        comment=comment,
        scope=token_scope_text(limits.scope),
        created_at=lifetime[0],
        expires_at=lifetime[1],
    )


def end_of_life(limits: TokenLimits, *, by: Identity, now: datetime, default_days: int) -> datetime | None:
    """When a token that is made now ends; None: never.

    Raises DeniedError where it would outlive the token that makes it.
    """
    days = default_days if limits.expires_in_days is None else limits.expires_in_days
    expires_at = None if limits.never_expires or not days else now + timedelta(days=days)
    makers_end = by.token.expires_at if by.token is not None else None
    if makers_end is None or (expires_at is not None and expires_at <= makers_end):
        return expires_at
    if limits == TokenLimits(scope=limits.scope):
        return makers_end  # Nothing was said about it.
    msg = f"The new token would outlive the token that makes it, which expires at {makers_end}"
    raise DeniedError(msg, left=_LEFT, todo="Say fewer days, or log in with the password.", user=by.user)


def check_token_may_manage(by: Identity, *, password_of: str = "") -> None:
    """Refuse what would outlive the token that somebody showed. Raises DeniedError.

    A token with a scope changes no users, roles, grants, tokens or passwords; one that expires does not set its user's
    password.
    """
    if by.token is None:
        return
    if by.token.scope is not None:
        msg = f"Accounts, passwords, grants and tokens are denied to user '{by.user}': the token has a scope"
    elif password_of == by.user and by.token.expires_at is not None:
        msg = f"A new password is denied to user '{by.user}': the token expires, and the password would not"
    else:
        return
    raise DeniedError(msg, left=_LEFT, todo="Log in with the password.", user=by.user)


def token_use(entry: AccessTokenEntry) -> TokenUse:
    """What a token proves besides its user."""
    return TokenUse(token_id=entry.token_id, scope=parse_token_scope(entry.scope), expires_at=entry.expires_at)


def check_valid(entry: AccessTokenEntry, now: datetime) -> None:
    """Raises AuthError for a token that has expired. Only those who have the token hear it."""
    if entry.expires_at is not None and entry.expires_at <= now:
        msg = f"Access denied: the token {entry.token_id} expired at {entry.expires_at}"
        raise AuthError(msg, left=_LEFT, todo="Make a new one with CREATE TOKEN.")


class LastUses:
    """Writes down when tokens are used: at most once a minute for each, so that reading does not mean writing."""

    def __init__(self, store: MetadataStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._tried: dict[str, float] = {}

    def note(self, entry: AccessTokenEntry) -> None:
        """The token was used now. A store that cannot be written to keeps nobody out."""
        now, now_s = self._clock.now(), self._clock.monotonic_s()
        if entry.last_used_at is not None and now - entry.last_used_at < timedelta(seconds=USE_NOTED_EVERY_S):
            return
        with self._lock:
            tried = self._tried.get(entry.token_id)
            if tried is not None and now_s - tried < USE_NOTED_EVERY_S:
                return
            if len(self._tried) >= MOST_NOTED:
                self._tried.clear()
            self._tried[entry.token_id] = now_s
        try:
            self._store.save_access_token(replace(entry, last_used_at=now))
        except StoreError as error:
            _log.warning("the use of token %s was not written down: %s", entry.token_id, error)
