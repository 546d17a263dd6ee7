"""Proving who somebody is: by password, by the challenge of MySQL, by token."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from argon2 import PasswordHasher

from lading.clock import Clock
from lading.errors import AuthError, LadingError, SecretError, SqlError
from lading.service.security.audit_event import result_of
from lading.service.security.audit_log import AuditLog
from lading.service.security.origin import Face, Origin
from lading.service.security.passwords import Passwords, native_fits
from lading.service.security.privileges import ROOT_NAME, Identity
from lading.service.security.throttle import Throttle
from lading.service.security.tokens import LastUses, check_valid, token_digest, token_use
from lading.service.security.vault import Vault
from lading.settings import SecuritySettings
from lading.sql.syntax.names import check_user_name
from lading.store.protocols import MetadataStore
from lading.store.records import AccessTokenEntry, UserEntry

_LEFT = "Nothing was changed."
ROOT_HINT = "The first password of root is in the file root.password of the service's home folder."
"""Said to everybody who is refused as root: it tells nothing about this service."""
UNKNOWN_USER = "(unknown)"
"""Who tried to log in under a name that nobody has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A wrong password, which was counted. The caller hears the error after the delay."""

    error: AuthError
    delay_s: float


class Directory(Protocol):
    """Knows users and their passwords, elsewhere. Anything may raise UnavailableError: it does not answer."""

    def check(self, user: str, password: str) -> bool:
        """Whether this is the password of the user. An empty one never is."""
        ...

    def roles_of(self, user: str) -> tuple[str, ...] | None:
        """The roles of somebody who has logged in; None when the login does not count any longer."""
        ...


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
        security: SecuritySettings | None = None,
        audit: AuditLog | None = None,
        directory: Directory | None = None,
    ) -> None:
        self._directory = directory
        self._security = security or SecuritySettings()
        self._store = store
        self._clock = clock
        self._vault = vault
        self._audit_log = audit
        self._passwords = Passwords(hasher)
        self._last_uses = LastUses(store, clock)
        self.throttle = Throttle(clock, wait or clock.sleep, self._security)
        # Fits no password; another one in every process.
        self._nobody = secrets.token_bytes(20)
        self._nobody_sha2 = secrets.token_bytes(32)

    def check_password(self, user: str, password: str, *, peer: str = "") -> Identity:
        """Who this is. Raises AuthError, late, when the password is wrong or nobody has this name.

        The peer is an address without its port. Waiting takes the thread for at most ten seconds.
        """
        self._admit(user, peer)
        return self._decide(user, peer, self.prove(user, password, peer=peer), used_password=bool(password))

    def prove(self, user: str, password: str, *, peer: str = "") -> Identity | None:
        """Who this is; None when it is not the password. Nothing is counted or delayed: for faces that use the
        throttle themselves.
        """
        entry = self._find(user)
        if self._directory is not None and self._is_of_directory(user, entry):
            return _of_directory(user, entry) if self._directory.check(user, password) else None
        fits = self._passwords.fits(entry.password_hash if entry else "", password)
        return identity_of(entry) if entry and fits else None

    def is_from_directory(self, user: str) -> bool:
        """Whether a directory decides about the password of this name."""
        return self._directory is not None and self._is_of_directory(user, self._find(user))

    def identity_for(self, user: str) -> Identity:
        """Somebody of this name whose password was right."""
        entry = self._find(user)
        if self._directory is not None and self._is_of_directory(user, entry):
            return _of_directory(user, entry)
        return identity_of(entry) if entry is not None else Identity(user=user, is_root=user == ROOT_NAME)

    def directory_roles(self, identity: Identity) -> tuple[str, ...]:
        """The roles that others give, besides those that were granted here. Raises UnavailableError."""
        if self._directory is None or not identity.is_from_directory:
            return identity.roles
        return (*identity.roles, *(self._directory.roles_of(identity.user) or ()))

    def _is_of_directory(self, user: str, entry: UserEntry | None) -> bool:
        """Root never; a user with a password never; of others, names in small letters: directories know no others."""
        if entry is not None:
            return entry.name != ROOT_NAME and not entry.password_hash
        return _is_name(user) and user == user.lower() != ROOT_NAME

    def check_native(self, user: str, scramble: bytes, nonce: bytes, *, peer: str = "") -> Identity:
        """Who this is, by the answer that mysql_native_password gave to a nonce. Raises AuthError as above."""
        self._admit(user, peer)
        fits = native_fits(self.native_verifier(user), scramble, nonce)
        proven = self.bind(Identity(user=user, is_root=user == ROOT_NAME)) if fits else None
        return self._decide(user, peer, proven, used_password=bool(scramble))

    def native_verifier(self, user: str) -> bytes:
        """SHA1(SHA1(password)). Users without a password, and unknown names, get 20 bytes that no password fits."""
        entry = self._find(user)
        if entry is None or not entry.native_verifier:
            return self._nobody
        todo = f"set the password of '{user}' again with ALTER USER"
        return bytes.fromhex(self._vault.open(entry.native_verifier, what=f"The password of '{user}'", instead=todo))

    def sha2_verifier(self, user: str) -> bytes | None:
        """SHA256(SHA256(password)). None: only the password itself can be checked.

        That is so for users of older stores, until their password was right once in this process, and when the key of
        the home was lost. Names that nobody has get 32 bytes that no password fits.
        """
        entry = self._find(user)
        if self._directory is not None and self._is_of_directory(user, entry):
            return None
        if entry is None or not entry.password_hash:
            return self._nobody_sha2
        if not entry.sha2_verifier:
            return self._passwords.sha2_proven(entry.password_hash)
        try:
            return bytes.fromhex(self._vault.open(entry.sha2_verifier, what=f"The password of '{user}'"))
        except SecretError:
            return self._passwords.sha2_proven(entry.password_hash)

    def check_token(self, text: str, *, peer: str = "", face: Face = Face.LOCAL) -> Identity:
        """Whose bearer token this is. Raises AuthError. Nobody can guess one, so nothing is delayed."""
        origin = Origin(face=face, peer=peer)
        try:
            identity = self._by_token(text, peer)
        except AuthError as error:
            self._record("", origin, "token", error)
            raise
        token = f"token {identity.token.token_id}" if identity.token is not None else "token"
        self._record(identity.user, origin, token)
        return replace(identity, origin=origin)

    def _by_token(self, text: str, peer: str) -> Identity:
        parts = text.split("_", 2)
        entry = self._store.find_access_token(parts[1]) if len(parts) == 3 and parts[1].isalnum() else None
        if hmac.compare_digest(entry.digest if entry else "", token_digest(text)) and entry:
            owner = self._find(entry.user)
            if owner is not None:
                return self._identity_by_token(owner, entry)
        msg = f"Access denied{f' from {peer}' if peer else ''}: the token is not valid"
        raise AuthError(msg, left=_LEFT, todo="See SHOW TOKENS; make a new one with CREATE TOKEN.")

    def _identity_by_token(self, owner: UserEntry, entry: AccessTokenEntry) -> Identity:
        check_valid(entry, self._clock.now())
        self._last_uses.note(entry)
        use = token_use(entry)
        is_root = owner.name == ROOT_NAME and use.scope is None  # With a scope, not even root may do everything.
        return replace(identity_of(owner), credential="", token=use, is_root=is_root)

    def _find(self, name: str) -> UserEntry | None:
        # Of other names, nobody has one, and not every database can even be asked for it.
        return self._store.find_user(name) if _is_name(name) else None

    def bind(self, identity: Identity) -> Identity:
        """The same identity, bound to the account and the password of this moment."""
        entry = self._find(identity.user)
        return identity if entry is None else identity_of(entry)

    def is_current(self, identity: Identity) -> bool:
        """Whether a login still counts: its user was not dropped since, and has the password that proved it."""
        entry = self._find(identity.user)
        if identity.is_from_directory:
            return self._is_current_in_directory(identity, entry)
        if entry is None or entry.created_at != identity.created_at:
            return False
        return not identity.credential or identity.credential == credential_of(entry)

    def _is_current_in_directory(self, identity: Identity, entry: UserEntry | None) -> bool:
        if self._directory is None or not self._is_of_directory(identity.user, entry):
            return False  # The user got a password here.
        is_same = (entry.created_at if entry is not None else None) == identity.created_at
        return is_same and self._directory.roles_of(identity.user) is not None

    def _decide(self, user: str, peer: str, proven: Identity | None, *, used_password: bool) -> Identity:
        settled = self.settle(user, peer, proven, used_password=used_password)
        if isinstance(settled, Refusal):
            self.throttle.wait(settled.delay_s)
            raise settled.error
        return settled

    def _admit(self, user: str, peer: str) -> None:
        if delay_s := self.reserve(user, peer):
            self.throttle.wait(delay_s)

    def reserve(self, user: str, peer: str, *, face: Face = Face.LOCAL) -> float:
        """Take a turn: for how many seconds to wait before `prove`. Raises AuthError after too many wrong passwords."""
        try:
            return self.throttle.reserve(user, peer)
        except AuthError as error:
            self._record(user, Origin(face=face, peer=peer), "password", error)
            raise

    def settle(
        self, user: str, peer: str, proven: Identity | None, *, used_password: bool, face: Face = Face.LOCAL
    ) -> Identity | Refusal:
        """Count and record what `prove` found. For faces that wait without a thread: first `reserve`, then this."""
        origin = Origin(face=face, peer=peer)
        if proven is not None:
            self.throttle.forgive(user, peer)
            self._record(proven.user, origin, "password")
            return replace(proven, origin=origin)
        delay_s = self.throttle.note(user, peer)
        whence = f"@'{peer}'" if peer else ""
        msg = f"Access denied for user '{user}'{whence} (using password: {'YES' if used_password else 'NO'})"
        todo = f"Check the name and the password.{f' {ROOT_HINT}' if user == ROOT_NAME else ''}"
        error = AuthError(msg, left=_LEFT, todo=todo, user=user, peer=peer)
        self._record(user, origin, "password", error)
        return Refusal(error=error, delay_s=delay_s)

    def record_proof(self, origin: Origin, by: str, prove: Callable[[], Identity]) -> Identity:
        """Who this is, by a proof of another kind, which is recorded as every login."""
        try:
            identity = prove()
        except LadingError as error:
            self._record("", origin, by, error)
            raise
        self._record(identity.user, origin, by)
        return replace(identity, origin=origin)

    def _record(self, user: str, origin: Origin, by: str, error: LadingError | None = None) -> None:
        if self._audit_log is None:
            return
        if error is None:
            self._audit_log.login(user, origin, by)
            return
        # People type passwords where the name belongs: a name that nobody has is not kept.
        shown = UNKNOWN_USER
        with suppress(LadingError):  # The store may not answer; the refusal is recorded all the same.
            shown = user if self._find(user) is not None else UNKNOWN_USER
        self._audit_log.login(shown, origin, by, result=result_of(error), error=error.code)


def identity_of(entry: UserEntry) -> Identity:
    """Somebody who has proven to be this user with the password that the entry keeps."""
    return Identity(
        user=entry.name,
        is_root=entry.name == ROOT_NAME,
        created_at=entry.created_at,
        credential=credential_of(entry),
    )


def _of_directory(user: str, entry: UserEntry | None) -> Identity:
    """Somebody whom the directory knows, with an account here or without."""
    return replace(identity_of(entry) if entry is not None else Identity(user=user), is_from_directory=True)


def _is_name(name: str) -> bool:
    try:
        check_user_name(name)
    except SqlError:
        return False
    return True


def credential_of(entry: UserEntry) -> str:
    """Tells one password of a user from the next. The hash has a random salt: the same password set again differs."""
    return hashlib.sha256(entry.password_hash.encode()).hexdigest()[:32]
