"""Where a service may listen."""

from __future__ import annotations

import ipaddress

from lading.errors import ConfigError


def check_listening(host: str, *, has_tls: bool, insecure: bool, what: str = "") -> None:
    """Refuse to be reachable from elsewhere when somebody could listen in.

    Raises ConfigError, which says what to do. `insecure` stands for TLS and for nothing else.
    """
    if is_loopback(host):
        return
    subject = f"{what or 'The service'} may not listen on {host or 'all addresses'}"
    if not (has_tls or insecure):
        msg = f"{subject}: without TLS, passwords, tokens and rows would cross the network in the clear"
        todo = "Give a certificate and its key, listen on 127.0.0.1, or say --insecure if something else protects it."
        raise ConfigError(msg, left="Nothing was started.", todo=todo, host=host)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address. Other names than localhost are not asked for: they may change."""
    name = host.strip().removeprefix("[").removesuffix("]").lower()
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def is_elsewhere(peer: str) -> bool:
    """Whether a peer is known to be another machine. Sockets without an address are of this one."""
    name = peer.strip().removeprefix("[").removesuffix("]").partition("%")[0]
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return not is_loopback(name)
