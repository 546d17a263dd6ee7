"""caching_sha2_password: what MySQL's clients use by default since version 8, and alone since version 9.

The quick way: the client answers SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce), which is checked with
SHA256(SHA256(password)). Where the server does not have that, or the answer is wrong, the client is asked for the
password itself: over TLS as it is, otherwise encrypted with an RSA key that this process made for itself.
"""

from __future__ import annotations

import hmac
import threading
from hashlib import sha256
from itertools import cycle

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

FAST_OK = b"\x01\x03"
"""The quick answer was right; OK follows."""
ASK_PASSWORD = b"\x01\x04"
WANTS_KEY = b"\x02"
_MORE = b"\x01"
_DIGEST_BYTES = 32
_KEY_BITS = 2048


def is_empty(response: bytes) -> bool:
    """Whether the client has no password. MySQL's own clients say so with a zero."""
    return response in (b"", b"\0")


def is_sha2_proof(response: bytes, nonce: bytes, kept: bytes) -> bool:
    """Whether a quick answer proves that the client knows the password."""
    if len(response) != _DIGEST_BYTES or len(kept) != _DIGEST_BYTES:
        return False
    mask = sha256(kept + nonce).digest()
    once = bytes(left ^ right for left, right in zip(response, mask, strict=True))
    return hmac.compare_digest(sha256(once).digest(), kept)


class ExchangeKey:
    """An RSA key for passwords that come without TLS. Made when it is first asked for; another one in every process.

    It keeps a password from somebody who listens, not from somebody who stands between: that takes TLS.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: rsa.RSAPrivateKey | None = None

    def public_packet(self) -> bytes:
        """The packet with the public half, PEM. May take a while the first time."""
        public = self._private().public_key()
        spki = serialization.PublicFormat.SubjectPublicKeyInfo
        return _MORE + public.public_bytes(serialization.Encoding.PEM, spki)

    def decrypt(self, answer: bytes, nonce: bytes) -> str | None:
        """The password in an answer; None when it was not made with this key."""
        # The protocol's choice of hash; nothing of it depends on collisions.
        scheme = padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)  # noqa: S303
        try:
            mixed = self._private().decrypt(answer, scheme)
        except ValueError:
            return None
        return clear_password(bytes(left ^ right for left, right in zip(mixed, cycle(nonce), strict=False)))

    def _private(self) -> rsa.RSAPrivateKey:
        with self._lock:
            if self._key is None:
                self._key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
            return self._key


def clear_password(answer: bytes) -> str:
    """A password as clients send it: with a zero behind it."""
    return answer.removesuffix(b"\0").decode("utf-8", "replace")
