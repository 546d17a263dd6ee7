"""The certificate of the service, read again when its files change."""

from __future__ import annotations

import logging
import ssl
import threading
from pathlib import Path

from lading.errors import ConfigError

_log = logging.getLogger(__name__)
_Seen = tuple[tuple[int, int, int], ...]


class CertificateFiles:
    """A certificate and its key, as PEM files. Asked for at every new connection, by the threads of all faces.

    Files that were replaced by a pair that cannot be used change nothing: the pair before stays in use, and the log
    says why. Connections that are open keep the certificate that they began with.
    """

    def __init__(self, certificate: Path, key: Path, key_password: str | None = None) -> None:
        """Raises ConfigError when there is nothing to begin with."""
        self._certificate = certificate
        self._key = key
        self._key_password = key_password
        self._lock = threading.Lock()
        self._seen = self._look()
        try:
            self._context = self._load()
        except (OSError, ValueError) as error:
            msg = f"TLS cannot be served with certificate {certificate} and key {key}: {error}"
            raise ConfigError(msg, left="Nothing was started.", todo="Give PEM files that belong together.") from error

    def context(self) -> ssl.SSLContext:
        """What the next connection is encrypted with."""
        with self._lock:
            # Looked at before the files are read: what changes meanwhile is seen by the next connection.
            seen = self._look()
            if seen != self._seen:
                self._seen = seen
                self._replace()
            return self._context

    def _replace(self) -> None:
        try:
            self._context = self._load()
        except (OSError, ValueError) as error:
            _log.error(
                "The new certificate %s with key %s cannot be used: %s. The one before stays in use. Put a certificate "
                "and a key that belong together in place; they are read at the next connection.",
                self._certificate,
                self._key,
                error,
            )
            return
        _log.info("The certificate %s was read again; new connections use it", self._certificate)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Without a password given here, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(self._certificate, self._key, password=self._key_password or "")
        return context

    def _look(self) -> _Seen:
        return tuple(_stamp(path) for path in (self._certificate, self._key))


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0, 0)
    return (status.st_ino, status.st_mtime_ns, status.st_size)
