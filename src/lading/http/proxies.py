"""From where a request came.

The peer decides how long wrong passwords wait. What a header says about
it is believed only when the proxy that wrote it was named (`--trust-proxy`); uvicorn has replaced the peer then.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from starlette.types import Scope

from lading.errors import ConfigError
from lading.service.security.bind_policy import is_loopback

SOMEWHERE = "0.0.0.0"  # noqa: S104 - nothing is bound to it
"""The peer of everybody who came through a proxy of this machine that nobody named: certainly not this machine."""
_FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})


def place_peer(scope: Scope) -> None:
    """What a proxy of this machine passes on did not begin on this machine.

    All of it has one peer, whatever the headers say: who makes headers up gains no attempt.
    """
    client = scope.get("client")
    if client and is_loopback(client[0]) and any(name in _FORWARDED for name, _ in scope["headers"]):
        scope["client"] = (SOMEWHERE, client[1])


def check_proxies(addresses: Iterable[str]) -> tuple[str, ...]:
    """Addresses and networks of proxies. Raises ConfigError."""
    found = tuple(address.strip() for address in addresses)
    for address in found:
        try:
            ipaddress.ip_network(address)
        except ValueError as error:
            msg = f"'{address}' is not the address of a proxy"
            todo = "Give --trust-proxy an address such as 10.0.0.5, or a network such as 10.0.0.0/24."
            raise ConfigError(msg, left="Nothing was started.", todo=todo) from error
    return found
