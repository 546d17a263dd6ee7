"""Who the directory knows, and which roles it gives them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from lading.clock import Clock
from lading.errors import UnavailableError
from lading.service.security.ldap_client import LdapClient, LdapConnection
from lading.service.security.ldap_settings import LdapSettings, load_ldap_settings
from lading.service.security.redaction import HIDDEN
from lading.settings_sign_in import LdapVariables

KEPT_S = 60.0
"""How long an answer of the directory counts."""
LEFT_ALONE_S = 5.0
"""After it did not answer, it is not asked for so long: those who wait would keep threads from others."""
MOST_KEPT = 10_000


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What the directory said about a user."""

    roles: tuple[str, ...]
    asked_s: float
    """When it said that."""
    digest: bytes = field(default=b"", repr=False)
    """Of the password that was right; empty: it was not asked with one."""
    login_s: float = 0.0
    """When it was."""


class LdapDirectory:
    """Used by many threads. Answers are kept for a minute, in memory; passwords as keyed digests."""

    def __init__(self, settings: LdapSettings, clock: Clock) -> None:
        HIDDEN.learn([settings.service_password])
        self._settings = settings
        self._clock = clock
        self._client = LdapClient(settings, clock)
        self._secret = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._down: tuple[float, UnavailableError] | None = None

    def check(self, user: str, password: str) -> bool:
        """Whether this is the password of the user. Raises UnavailableError."""
        if not password:
            return False
        digest = hashlib.blake2b(password.encode("utf-8", "surrogatepass"), key=self._secret).digest()
        known, now_s = self._known.get(user), self._clock.monotonic_s()
        if known is not None and now_s - known.login_s < KEPT_S and hmac.compare_digest(known.digest, digest):
            return True
        roles = self._asking(lambda: self._log_in(user, password))
        if roles is None:
            return False
        self._keep(user, _Known(roles=roles, asked_s=now_s, digest=digest, login_s=now_s))
        return True

    def roles_of(self, user: str) -> tuple[str, ...] | None:
        """The roles of somebody who has logged in; None when the login does not count any longer.

        With a service account the directory is asked again after a minute: who left it is out. Without one, the login
        counts for as long as the settings say. Raises UnavailableError.
        """
        known, now_s = self._known.get(user), self._clock.monotonic_s()
        if not self._settings.service_dn:
            is_over = known is None or now_s - known.login_s > 60.0 * self._settings.session_minutes
            return None if known is None or is_over else known.roles
        if known is not None and now_s - known.asked_s < KEPT_S:
            return known.roles
        roles = self._asking(lambda: self._look_up(user))
        if roles is None:
            with self._lock:
                self._known.pop(user, None)
            return None
        # The password was not looked at: how long it counts does not change.
        self._keep(user, replace(known or _Known(roles=(), asked_s=0.0), roles=roles, asked_s=now_s))
        return roles

    def _asking(self, ask: Callable[[], Answer]) -> Answer:
        """Ask, unless the directory did not answer a moment ago."""
        down, now_s = self._down, self._clock.monotonic_s()
        if down is not None and now_s < down[0]:
            raise UnavailableError(down[1].what, left=down[1].left, todo=down[1].todo)
        try:
            answer = ask()
        except UnavailableError as error:
            self._down = (self._clock.monotonic_s() + LEFT_ALONE_S, error)
            raise
        self._down = None
        return answer

    def _keep(self, user: str, known: _Known) -> None:
        with self._lock:
            if len(self._known) >= MOST_KEPT:
                del self._known[next(iter(self._known))]
            self._known.pop(user, None)
            self._known[user] = known

    def _log_in(self, user: str, password: str) -> tuple[str, ...] | None:
        settings, client = self._settings, self._client
        if not settings.service_dn:
            by_template = client.dn_of(user)
            with client.bound(by_template, password) as own:
                return None if own is None else self._roles(own, user, by_template)
        with client.bound(settings.service_dn, settings.service_password) as service:
            dn = self._find(service, user)
            if not dn or service is None:
                return None
            with client.bound(dn, password) as own:
                return None if own is None else self._roles(service, user, dn)

    def _look_up(self, user: str) -> tuple[str, ...] | None:
        with self._client.bound(self._settings.service_dn, self._settings.service_password) as service:
            dn = self._find(service, user)
            return self._roles(service, user, dn) if dn and service is not None else None

    def _find(self, service: LdapConnection | None, user: str) -> str | None:
        if service is None:
            msg = f"The directory {self._settings.url} refuses LADING_LDAP_SERVICE_DN and its password"
            raise UnavailableError(msg, left="Nobody was signed in.", todo="Check the service account.")
        if not self._settings.bind_dn:
            return self._client.find_dn(service, user)
        dn = self._client.dn_of(user)
        return dn if self._client.is_there(service, dn) else None

    def _roles(self, connection: LdapConnection, user: str, dn: str) -> tuple[str, ...]:
        if not self._settings.group_base:
            return ()
        groups = self._client.find_groups(connection, user, dn)
        return tuple(sorted({role for group in groups for role in self._settings.roles.get(group, ())}))


def open_ldap(variables: LdapVariables, clock: Clock) -> LdapDirectory | None:
    """None when no directory is named. Raises ConfigError. The directory is not asked yet: it may be down."""
    settings = load_ldap_settings(variables)
    return LdapDirectory(settings, clock) if settings is not None else None
