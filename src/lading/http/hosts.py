"""Names by which the service may be called.

A page of another site can have its own name point to this machine. The browser then takes the service for that site:
Origin and Host agree, and the page may read every answer. Only the name itself tells them apart, so a name that nobody
gave to this service is refused.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lading.errors import ConfigError, RequestError
from lading.service.security.bind_policy import is_loopback

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::\d{1,5})?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Who is meant by which name.

    Known are: localhost and the addresses of loopback; the address that is listened on; the names that somebody
    configured. A service that listens beyond this machine is also known by every address, because a page whose site
    is an address came from that address, and by the name of the machine.
    """

    listens_on: str = "127.0.0.1"
    names: frozenset[str] = frozenset()
    machine: str = field(default_factory=socket.gethostname)

    @classmethod
    def configured(cls, listens_on: str, names: Iterable[str]) -> Hosts:
        """Names as people write them; a port behind one means nothing. Raises ConfigError."""
        return cls(listens_on=listens_on, names=frozenset(map(_configured, names)))

    def know(self, host: str) -> bool:
        """Whether the value of a Host header names this service."""
        name = _name(host)
        if name is None:
            return False
        if is_loopback(name) or name in self.names or name == self.listens_on.strip("[]").lower():
            return True
        if is_loopback(self.listens_on):
            return False
        machine = self.machine.lower()
        return _is_address(name) or name in (machine, machine.partition(".")[0])

    def check(self, hosts: Sequence[str]) -> None:
        """Refuse a request that is not for this service. Raises RequestError."""
        if len(hosts) == 1 and self.know(hosts[0]):
            return
        msg = f"This service is not called {', '.join(hosts)[:300] or 'nothing: the request has no Host'}"
        todo = "Use the address that it listens on, or have it started with --allow-host and this name."
        raise RequestError(msg, code="WrongHost", left="Nothing was changed.", todo=todo)


def _name(host: str) -> str | None:
    """The name or address in it, without its port, brackets and last dot; None when it is neither."""
    found = _HOST.fullmatch(host.strip())
    return found["name"].strip("[]").lower() if found else None


def _configured(text: str) -> str:
    name = text.strip().lower() if _is_address(text.strip()) else _name(text)
    if name is None:
        msg = f"'{text}' is not the name of a host"
        raise ConfigError(msg, left="Nothing was started.", todo="Give --allow-host a name such as lading.example.")
    return name


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
