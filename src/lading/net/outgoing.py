"""One request to a host that a statement names: to an address that was checked, without redirects, within a time.

The name is resolved once, each of its addresses is checked, and the connection goes to one of those: what the name
leads to afterwards does not matter. Proxies of the environment are not used.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lading.clock import Clock, SystemClock
from lading.errors import UnavailableError
from lading.net.addresses import AddressRules, literal_address_or_none, plain_host
from lading.net.resolve import Resolver, system_resolver

_PORTS = {"http": 80, "https": 443}
_MOST_ADDRESSES = 4
"""Of one name, that a connection is tried to."""
_LONGEST_REASON = 200
"""Letters of what a server said: others read it, in records and logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """By which rules, and for how long."""

    rules: AddressRules
    timeout_s: float
    """From the look-up of the name to the answer, over all addresses that are tried."""
    resolver: Resolver = system_resolver
    clock: Clock = field(default_factory=SystemClock)

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """The status of the answer; its text is not read. Raises UnavailableError."""
        parts = urlsplit(url)
        host, port = plain_host(parts.hostname or ""), parts.port or _PORTS.get(parts.scheme, 443)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        overdue, until_s = threading.Event(), self.clock.monotonic_s() + self.timeout_s
        connection = http.client.HTTPConnection(host, port, timeout=self.timeout_s)
        try:
            sock = connection.sock = self.connect(host, port, until_s)
        except OSError as error:
            raise _unavailable(host, self._reason(error, is_late=False)) from error
        # Each read has a time limit of its own: somebody who sends a byte now and then could hold the job up. A second
        # handle, because TLS takes the first one over.
        handle = sock.dup()
        timer = threading.Timer(until_s - self.clock.monotonic_s(), _cut, (handle, overdue))
        timer.daemon = True
        timer.start()
        try:
            if parts.scheme == "https":
                connection.sock = ssl.create_default_context().wrap_socket(sock, server_hostname=host)
            connection.request("POST", target, body=body, headers={"Host": parts.netloc, **headers})
            status = connection.getresponse().status
            if overdue.is_set():
                raise TimeoutError  # Headers that were cut off look like headers that have ended.
            return status
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = self._reason(error, is_late=overdue.is_set())
            raise _unavailable(host, why) from (error if _is_shown(error) else None)
        finally:
            timer.cancel()
            timer.join()
            handle.close()
            connection.close()

    def connect(self, host: str, port: int, until_s: float) -> socket.socket:
        """A connection to an address of this host that was checked. Raises OSError or UnavailableError."""
        literal = literal_address_or_none(host)
        addresses = (literal,) if literal is not None else self.resolver(host)
        if self.rules.refusal(host, addresses) is not None:
            raise _unavailable(host, "it leads to an address that this statement must not reach")
        failed: OSError = socket.gaierror(socket.EAI_NONAME, f"{host} has no address")
        for address in addresses[:_MOST_ADDRESSES]:
            left_s = until_s - self.clock.monotonic_s()
            if left_s <= 0:
                raise TimeoutError
            try:
                return socket.create_connection((address, port), timeout=left_s)
            except OSError as error:
                failed = error
        raise failed

    def _reason(self, error: Exception, *, is_late: bool) -> str:
        if is_late or isinstance(error, TimeoutError):
            return f"no answer within {self.timeout_s:g} seconds"
        said = f"{type(error).__name__}: {error}" if _is_shown(error) else type(error).__name__
        return said if len(said) <= _LONGEST_REASON else f"{said[:_LONGEST_REASON]}…"


def _is_shown(error: Exception) -> bool:
    """A header that cannot be sent is named with its value, which may be a secret."""
    return isinstance(error, OSError | http.client.HTTPException)


def _unavailable(host: str, why: str) -> UnavailableError:
    msg = f"{host} could not be told: {why}"
    return UnavailableError(msg, left="Nothing was changed.", todo="Check the host and the network.")


def _cut(sock: socket.socket, overdue: threading.Event) -> None:
    overdue.set()
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
