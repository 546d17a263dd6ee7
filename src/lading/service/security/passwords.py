"""Passwords: what is kept of them, and whether one fits.

Three things are kept. The argon2 hash decides wherever the password itself arrives. The MySQL protocol sends it seldom:
the server gives a nonce, and the client answers SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password))), or the like with
SHA256. To check that, the server must have the hash of the hash. It opens nothing by itself, but is cheap to guess
from; so both are sealed with the key of the home.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

_AT_ONCE = 4
_MOST_PROVEN = 1000


class Passwords:
    """Hashes and checks. Checking costs the same whether there is a hash to check against or not."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        # Each check takes 64 MiB for a moment; many at once must not take the machine.
        self._turn = threading.BoundedSemaphore(_AT_ONCE)
        self._nobody = ""
        self._secret = secrets.token_bytes(32)
        self._proven: dict[str, bytes] = {}
        self._sha2: dict[str, bytes] = {}

    def hash(self, password: str) -> str:
        """What is kept of a password."""
        with self._turn:
            return self._hasher.hash(_raw(password))

    def fits(self, kept: str, password: str) -> bool:
        """Whether a password is the one of which this was kept. Nothing kept: no password fits.

        A password that was right a moment ago is known again without the costs, so that clients which send it with
        every request are not slow. Only a digest is remembered, under a key that this process made for itself.
        """
        digest = hashlib.blake2b(_raw(password), key=self._secret).digest()
        if kept and hmac.compare_digest(self._proven.get(kept, b""), digest):
            return True
        with self._turn:
            if not self._nobody:
                self._nobody = self._hasher.hash(secrets.token_bytes(16))
            try:
                self._hasher.verify(kept or self._nobody, _raw(password))
            except (VerificationError, InvalidHashError):
                return False
        if not kept:
            return False
        if len(self._proven) >= _MOST_PROVEN:
            self._proven.clear()
            self._sha2.clear()
        self._proven[kept] = digest
        self._sha2[kept] = sha2_digest(password)
        return True

    def sha2_proven(self, kept: str) -> bytes | None:
        """SHA256(SHA256(password)) of a password that was right in this process; None: there was none."""
        return self._sha2.get(kept) if kept else None


def native_digest(password: str) -> bytes:
    """SHA1(SHA1(password)), which mysql_native_password is checked against."""
    return _sha1(_sha1(_raw(password)))


def sha2_digest(password: str) -> bytes:
    """SHA256(SHA256(password)), which caching_sha2_password is checked against."""
    return hashlib.sha256(hashlib.sha256(_raw(password)).digest()).digest()


def native_fits(verifier: bytes, scramble: bytes, nonce: bytes) -> bool:
    """Whether the answer of a MySQL client proves that it knows the password."""
    if len(scramble) != len(verifier):
        return False
    mixed = _sha1(nonce + verifier)
    once = bytes(a ^ b for a, b in zip(scramble, mixed, strict=True))
    return hmac.compare_digest(_sha1(once), verifier)


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()  # the protocol's choice; what is kept is sealed


def _raw(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")
