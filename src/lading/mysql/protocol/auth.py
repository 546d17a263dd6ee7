"""Who a client is, and how mysql_native_password proves it. `sha2.py` has the newer way."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import string
from hashlib import sha1
from typing import Protocol

_LETTERS = string.ascii_letters + string.digits
_SCRAMBLED = 20


class Authenticator(Protocol):
    """What the MySQL face asks about users. Called from worker threads; each call may take a while."""

    def native_verifier(self, user: str) -> bytes | None:
        """SHA1(SHA1(password)); empty: the user needs no password; None: nobody can be this user."""
        ...

    def sha2_verifier(self, user: str) -> bytes | None:
        """SHA256(SHA256(password)); empty: the user needs no password; None: the password itself is asked for."""
        ...

    def is_from_directory(self, user: str) -> bool:
        """Whether a directory decides about this user: it needs the password itself."""
        ...

    def check_password(self, user: str, password: str, peer: str) -> bool:
        """Whether this is the password, for clients that send it over TLS or encrypted."""
        ...

    def may_connect(self, user: str, peer: str) -> bool:
        """Whether this user may come from there at all."""
        ...

    def delay_s(self, user: str, peer: str) -> float | None:
        """Take a turn: for how long to wait before the password is looked at. None: was wrong too often."""
        ...

    def succeeded(self, user: str, peer: str) -> None:
        """Somebody proved who they are."""
        ...

    def failed(self, user: str, peer: str) -> float:
        """Somebody did not. Says for how many seconds the answer is to wait."""
        ...

    def sees(self, user: str, database: str, table: str) -> bool:
        """Whether a user may know of a table; with an empty table, of a database."""
        ...

    def is_admin(self, user: str) -> bool:
        """Whether a user may look at and end the connections of others."""
        ...


class LocalRoot:
    """For a service without users: root, without a password, from this machine only."""

    def native_verifier(self, user: str) -> bytes | None:
        """Only root has one, and it is empty."""
        return b"" if user == "root" else None

    def sha2_verifier(self, user: str) -> bytes | None:
        """As above; everybody else is asked for a password, which is wrong."""
        return b"" if user == "root" else None

    def is_from_directory(self, user: str) -> bool:
        """There is none."""
        return False

    def check_password(self, user: str, password: str, peer: str) -> bool:
        """Only root without a password."""
        return user == "root" and not password and self.may_connect(user, peer)

    def may_connect(self, user: str, peer: str) -> bool:
        """Only from this machine."""
        return user == "root" and is_loopback(peer)

    def delay_s(self, user: str, peer: str) -> float | None:
        """Nobody waits."""
        return 0.0

    def succeeded(self, user: str, peer: str) -> None:
        """Nothing is counted."""

    def failed(self, user: str, peer: str) -> float:
        """One second."""
        return 1.0

    def sees(self, user: str, database: str, table: str) -> bool:
        """Root sees everything."""
        return True

    def is_admin(self, user: str) -> bool:
        """Root may do everything."""
        return True


def is_loopback(peer: str) -> bool:
    """Whether an address is of this machine."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def new_nonce() -> bytes:
    """What a password is scrambled with: 20 letters, because some clients read them as text."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_SCRAMBLED)).encode()


def verifier(password: str) -> bytes:
    """What is kept instead of a password: enough to check an answer, not enough to give one."""
    return sha1(sha1(password.encode()).digest()).digest() if password else b""  # noqa: S324 - the protocol's choice


def is_proof(response: bytes, nonce: bytes, kept: bytes) -> bool:
    """Whether a response proves that the client knows the password.

    The response is SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password))); without a password it is empty.
    """
    if not kept or len(response) != _SCRAMBLED:
        return not kept and not response
    mask = sha1(nonce + kept).digest()  # noqa: S324 - the protocol's choice
    once = bytes(left ^ right for left, right in zip(response, mask, strict=True))
    return hmac.compare_digest(sha1(once).digest(), kept)  # noqa: S324 - the protocol's choice
