"""Addresses that a statement can make the service connect to: public, private, or closed to everybody. Pure.

The sources need these rules too, where they connect, so they are below them and not in the service.
"""

from __future__ import annotations

import re
import socket
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address


class AddressKind(Enum):
    """What an address is to the machine of the service."""

    PUBLIC = "public"
    PRIVATE = "private"
    """Of this machine or of its own network: loopback, RFC 1918, unique local, carrier NAT, unspecified, reserved."""
    CLOSED = "closed"
    """Link-local, or where a cloud keeps the credentials of its machines: never."""


_CLOSED = tuple(
    ip_network(text)
    for text in (
        "169.254.0.0/16",
        "fe80::/10",
        "fd00:ec2::/32",  # AWS over IPv6
        "fd20:ce::/32",  # Google over IPv6
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure
        "192.0.0.192/32",  # Oracle
        "224.0.0.0/4",
        "ff00::/8",
        "255.255.255.255/32",
    )
)
_CLOSED_NAMES = frozenset(
    (
        "metadata",
        "metadata.goog",
        "metadata.google.internal",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.azure.internal",
        "metadata.tencentyun.com",
    )
)
_NAT64 = ip_network("64:ff9b::/96")
_NAT64_LOCAL = ip_network("64:ff9b:1::/48")
_COMPATIBLE = ip_network("::/96")


def kind_of(address: str) -> AddressKind:
    """What an address is, also when an IPv4 address is wrapped in one of IPv6."""
    kinds = [_kind(each) for each in _forms(ip_address(address.partition("%")[0]))]
    return max(kinds, key=list(AddressKind).index)


def _kind(address: Address) -> AddressKind:
    if any(address in network for network in _CLOSED if network.version == address.version):
        return AddressKind.CLOSED
    return AddressKind.PUBLIC if address.is_global else AddressKind.PRIVATE


def _forms(address: Address) -> Iterable[Address]:
    """The address itself, or the IPv4 addresses that it wraps: packets to it end there."""
    if isinstance(address, IPv4Address):
        return [address]
    inner: list[IPv4Address] = []
    if address.ipv4_mapped is not None:
        inner.append(address.ipv4_mapped)
    if address.sixtofour is not None:
        inner.append(address.sixtofour)
    if address.teredo is not None:
        inner.extend(address.teredo)
    if address in _NAT64 or address in _NAT64_LOCAL or (address in _COMPATIBLE and int(address) > 1):
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return inner or [address]


def plain_host(host: str) -> str:
    """A host as resolvers take it: small letters, no wide digits or dots, no dot at the end, no brackets."""
    folded = unicodedata.normalize("NFKC", host).replace("\u3002", ".").lower()
    return folded.removeprefix("[").removesuffix("]").rstrip(".")


def literal_address_or_none(host: str) -> str | None:
    """The address that a host is already, also in the forms of old C libraries: 2130706433, 0x7f.1, 0177.0.0.1."""
    plain = plain_host(host)
    try:
        return str(ip_address(plain))
    except ValueError:
        pass
    if not re.fullmatch(r"[0-9a-fx.]+", plain):
        return None
    try:
        return socket.inet_ntoa(socket.inet_aton(plain))
    except OSError:
        return None


def is_closed_name(host: str) -> bool:
    """Whether a name is one that clouds give to the keeper of credentials."""
    return plain_host(host) in _CLOSED_NAMES


_NETWORK_WORDS = {"true": True, "all": True, "yes": True, "1": True, "": False, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRules:
    """Which private addresses may be connected to. Public ones always may be, and closed ones never.

    Pickles, so that Spark can carry it to where connections are made.
    """

    allow_private: bool = False
    networks: tuple[str, ...] = ()
    """Private networks that the installation allows, such as 10.1.0.0/16."""
    hosts: tuple[str, ...] = ()
    """Hosts whose addresses may be private, because somebody with ADMIN on everything named them."""

    def refusal(self, host: str, addresses: Iterable[str]) -> AddressKind | None:
        """The worst kind of address that a host has and must not be connected to; None: it may be."""
        if is_closed_name(host):
            return AddressKind.CLOSED
        found = list(addresses)
        if any(kind_of(address) is AddressKind.CLOSED for address in found):
            return AddressKind.CLOSED
        if self.allow_private or self.names(host):
            return None
        refused = (each for each in found if kind_of(each) is AddressKind.PRIVATE and not self._has(each))
        return AddressKind.PRIVATE if any(refused) else None

    def names(self, host: str) -> bool:
        """Whether somebody with ADMIN named this host, or the host that it is a bucket of: shop.store.example."""
        plain = plain_host(host)
        return any(plain == each or plain.endswith(f".{each}") for each in self.hosts)

    def _has(self, address: str) -> bool:
        forms = list(_forms(ip_address(address.partition("%")[0])))
        allowed = [ip_network(network) for network in self.networks]
        return all(any(form.version == net.version and form in net for net in allowed) for form in forms)


EVERY_PRIVATE = AddressRules(allow_private=True)
"""For code that makes a source or a table by hand, without a statement: the owner of the process."""


def parse_networks(text: str) -> AddressRules:
    """`true`, `false`, or networks with commas between them. Raises ValueError."""
    word = _NETWORK_WORDS.get(text.strip().lower())
    if word is not None:
        return AddressRules(allow_private=word)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return AddressRules(networks=tuple(str(ip_network(part, strict=False)) for part in parts))
