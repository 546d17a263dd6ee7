"""Names to addresses."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

from lading.clock import Clock
from lading.net.addresses import literal_address_or_none

Resolver = Callable[[str], Sequence[str]]
"""All addresses of a name; none when nobody knows it."""
_REMEMBERED_S = 30.0
_MOST_NAMES = 1000


def system_resolver(host: str) -> Sequence[str]:
    """The addresses that this machine finds."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return sorted({str(entry[4][0]) for entry in found})


class Names:
    """Asks a resolver, and remembers for a short time what it said."""

    def __init__(self, clock: Clock, resolver: Resolver | None = None) -> None:
        self._clock = clock
        self._resolver = resolver or system_resolver
        self._remembered: dict[str, tuple[float, Sequence[str]]] = {}

    def addresses(self, host: str) -> Sequence[str]:
        """All addresses of a host, which may be one itself."""
        literal = literal_address_or_none(host)
        if literal is not None:
            return (literal,)
        now = self._clock.monotonic_s()
        known = self._remembered.get(host)
        if known is not None and now - known[0] < _REMEMBERED_S:
            return known[1]
        found = self._resolver(host)
        if len(self._remembered) >= _MOST_NAMES:
            self._remembered.clear()
        self._remembered[host] = now, found
        return found
