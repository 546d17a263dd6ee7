"""Proving who somebody is: by password, by the challenge of MySQL, by token."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from argon2 import PasswordHasher

from lading.clock import Clock
from lading.errors import AuthError, SqlError
from lading.service.listening import is_elsewhere
from lading.service.passwords import Passwords, native_fits
from lading.service.rights import ROOT_NAME, Identity
from lading.service.secrets import Vault
from lading.service.throttle import Throttle
from lading.sql.names import check_user_name
from lading.store.protocols import MetadataStore
from lading.store.records import UserEntry

_LEFT = "Nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A wrong password, which was counted. Whoever asked for it hears the error after the delay."""

    error: AuthError
    delay_s: float


class Login:
    """Checks who somebody is. Nothing tells a wrong password from a name that nobody has."""

    def __init__(
        self,
        store: MetadataStore,
        clock: Clock,
        vault: Vault,
        *,
        wait: Callable[[float], None] | None = None,
        hasher: PasswordHasher | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._vault = vault
        self._passwords = Passwords(hasher)
        self.throttle = Throttle(clock, wait or clock.sleep)
        # Fits no password; another one in every process.
        self._nobody = secrets.token_bytes(20)

    def check_password(self, user: str, password: str, *, peer: str = "") -> Identity:
        """Who this is. Raises AuthError, late, when the password is wrong or nobody has this name.

        The peer is an address without its port. Waiting takes the thread for at most ten seconds.
        """
        self.throttle.admit(user, peer)
        return self._decide(user, peer, fits=self.fits(user, password, peer=peer), used_password=bool(password))

    def fits(self, user: str, password: str, *, peer: str = "") -> bool:
        """Whether this is the password. Nothing is counted or delayed: for faces that use the throttle themselves."""
        entry = self._find(user)
        if entry and _is_open(entry):
            return not password and not is_elsewhere(peer)
        return self._passwords.fits(entry.password_hash if entry else "", password)

    def check_native(self, user: str, scramble: bytes, nonce: bytes, *, peer: str = "") -> Identity:
        """Who this is, by the answer that mysql_native_password gave to a nonce. Raises AuthError as above."""
        self.throttle.admit(user, peer)
        verifier = self.native_verifier(user)
        is_open = verifier is None and not is_elsewhere(peer)
        fits = is_open and not scramble if verifier is None else native_fits(verifier, scramble, nonce)
        return self._decide(user, peer, fits=fits, used_password=bool(scramble))

    def native_verifier(self, user: str) -> bytes | None:
        """SHA1(SHA1(password)). None: an empty answer is right, which is so for root until its password is set.

        Users without a password, and names that nobody has, get 20 bytes that no password fits.
        """
        entry = self._find(user)
        if entry and _is_open(entry):
            return None
        if entry is None or not entry.native_verifier:
            return self._nobody
        todo = f"set the password of '{user}' again with ALTER USER"
        return bytes.fromhex(self._vault.open(entry.native_verifier, what=f"The password of '{user}'", todo=todo))

    def check_token(self, text: str, *, peer: str = "") -> Identity:
        """Whose bearer token this is. Raises AuthError. Nobody can guess one, so nothing is delayed."""
        parts = text.split("_", 2)
        entry = self._store.find_access_token(parts[1]) if len(parts) == 3 and parts[1].isalnum() else None
        if hmac.compare_digest(entry.digest if entry else "", token_digest(text)) and entry:
            return Identity(user=entry.user, is_root=entry.user == ROOT_NAME)
        msg = f"Access denied{f' from {peer}' if peer else ''}: the token is not valid"
        raise AuthError(msg, left=_LEFT, todo="See SHOW TOKENS; make a new one with CREATE TOKEN.")

    def _find(self, name: str) -> UserEntry | None:
        try:
            check_user_name(name)
        except SqlError:
            return None  # Nobody has such a name, and not every database can even be asked for it.
        return self._store.find_user(name)

    def _decide(self, user: str, peer: str, *, fits: bool, used_password: bool) -> Identity:
        settled = self.settle(user, peer, fits=fits, used_password=used_password)
        if isinstance(settled, Refusal):
            self.throttle.wait(settled.delay_s)
            raise settled.error
        return settled

    def settle(self, user: str, peer: str, *, fits: bool, used_password: bool) -> Identity | Refusal:
        """Count what `fits` found. For faces that wait without a thread: first `throttle.reserve`, then this."""
        if fits:
            self.throttle.forgive(user, peer)
            return Identity(user=user, is_root=user == ROOT_NAME)
        delay_s = self.throttle.note(user, peer)
        whence = f"@'{peer}'" if peer else ""
        msg = f"Access denied for user '{user}'{whence} (using password: {'YES' if used_password else 'NO'})"
        error = AuthError(msg, left=_LEFT, todo="Check the name and the password.", user=user, peer=peer)
        return Refusal(error=error, delay_s=delay_s)


def _is_open(entry: UserEntry) -> bool:
    """Root without a password: the empty password is right, on this machine. See also `check_listening`."""
    return entry.name == ROOT_NAME and not entry.password_hash


def token_digest(text: str) -> str:
    """What is kept of a bearer token."""
    # A token is 256 random bits: there is nothing that a slow hash would protect.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
