"""A small forward proxy within this process, for libraries that follow HTTP redirects and cannot be told not to.

pyarrow (curl) and delta-rs (reqwest) go wherever an S3 endpoint sends them: to the metadata service of the cloud, or
to a port of this machine. They also look a name up again after it was checked. So, for an endpoint that a statement
names, they are given this proxy. It connects to the host and port of that endpoint, at an address that it has checked,
and to nothing else; a request for another place is answered with an error of S3.

It listens on the loopback address only, at a port of its own in each process that needs one (also in Spark's Python
workers), and wants to hear a secret. TLS goes through it untouched: it does not see what is said.
"""

from __future__ import annotations

import base64
import os
import secrets
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from lading.net.addresses import AddressRules, literal_address_or_none, plain_host
from lading.net.proxy_http import Head, MalformedError, Request, parse_authority, read_head, relay_body, splice
from lading.net.resolve import system_resolver

_CONNECT_S = 10.0
_LAST_ANSWER_S = 60.0
_NOT_FOLLOWED = "Redirects of an S3 endpoint are not followed: check s3.endpoint"
_NO_PASSWORD = f"This is a request for another place than the S3 endpoint. {_NOT_FOLLOWED}"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAddress:
    """What a library is told of the proxy."""

    port: int
    user: str
    password: str = field(repr=False)

    @property
    def url(self) -> str:
        """As reqwest takes it."""
        return f"http://{self.user}:{self.password}@127.0.0.1:{self.port}"

    @property
    def arrow_options(self) -> dict[str, str | int]:
        """As pyarrow takes it."""
        given = {"scheme": "http", "host": "127.0.0.1", "username": self.user, "password": self.password}
        return {**given, "port": self.port}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The one place that a user of the proxy may reach."""

    host: str
    port: int
    rules: AddressRules
    via: str = field(default="", repr=False)
    """A proxy that the environment names for it, with its password. It decides by itself where a name leads."""

    @classmethod
    def to(cls, endpoint: str, rules: AddressRules) -> Route:
        """The route to an S3 endpoint: a URL, or a host that is reached with TLS."""
        parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        host, scheme = plain_host(parts.hostname or ""), parts.scheme.lower()
        via = "" if proxy_bypass(host) else getproxies().get(scheme, "")
        return cls(host=host, port=parts.port or _PORTS.get(scheme, 443), rules=rules, via=via)

    def leads_to(self, host: str, port: int) -> bool:
        """Whether this is the endpoint, or a bucket of it: shop.store.example."""
        plain = plain_host(host)
        return port == self.port and (plain == self.host or plain.endswith(f".{self.host}"))

    def connect(self, host: str) -> socket.socket:
        """A connection to a host of this route, at an address that was checked. Raises OSError, _RefusedError."""
        if self.via:
            proxy = urlsplit(self.via if "://" in self.via else f"http://{self.via}")
            return socket.create_connection((proxy.hostname or "", proxy.port or 80), timeout=_CONNECT_S)
        literal = literal_address_or_none(host)
        addresses = (literal,) if literal is not None else system_resolver(plain_host(host))
        if self.rules.refusal(host, addresses) is not None:
            msg = f"{host} leads to an address that this statement must not reach"
            raise _RefusedError(msg)
        failed: OSError = socket.gaierror(socket.EAI_NONAME, f"{host} has no address")
        for address in addresses:
            try:
                return socket.create_connection((address, self.port), timeout=_CONNECT_S)
            except OSError as error:
                failed = error
        raise failed

    def proxy_headers(self) -> tuple[str, ...]:
        """What the proxy of the environment wants to hear."""
        proxy = urlsplit(self.via if "://" in self.via else f"http://{self.via}")
        if not self.via or proxy.username is None:
            return ()
        return (f"Proxy-Authorization: {_basic(unquote(proxy.username), unquote(proxy.password or ''))}",)


class _RefusedError(Exception):
    """A request is for a place that it must not reach; the text says which."""


class Gate:
    """The proxy of one process. Its threads end with the process."""

    def __init__(self) -> None:
        self._routes: dict[str, tuple[Route, GateAddress]] = {}
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, name="egress-gate", daemon=True).start()

    def address_for(self, route: Route) -> GateAddress:
        """Where a library reaches this route, and nothing else."""
        with self._lock:
            for known, address in self._routes.values():
                if known == route:
                    return address
            port = self._listener.getsockname()[1]
            address = GateAddress(port=port, user=secrets.token_hex(16), password=secrets.token_hex(16))
            self._routes[_basic(address.user, address.password)] = route, address
            return address

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(client,), name="egress-connection", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, MalformedError):
            client.settimeout(None)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            first = read_head(client)
            if first is None:
                return
            found = self._routes.get(first.value("proxy-authorization"))
            if found is None:
                # reqwest keeps its proxy's password to itself when it follows a redirect to another host.
                client.sendall(_error(407, "ProxyAuthenticationRequired", _NO_PASSWORD))
                return
            _Connection(found[0], client, first).run()


class _Connection:
    """One connection of a library: all of its requests go to one server."""

    def __init__(self, route: Route, client: socket.socket, first: Head) -> None:
        self._route = route
        self._client = client
        self._first = first

    def run(self) -> None:
        request = Request.of(self._first)
        try:
            host = self._check(request)
            server = self._route.connect(host)
        except _RefusedError as error:
            self._client.sendall(_error(403, "AccessDenied", str(error)))
            return
        except OSError as error:
            msg = f"{self._route.host}:{self._route.port} cannot be reached: {error.strerror or error}"
            self._client.sendall(_error(502, "BadGateway", msg))
            return
        with server:
            server.settimeout(None)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if request.is_connect:
                self._tunnel(request, server)
            else:
                self._requests(request, server)

    def _check(self, request: Request) -> str:
        host, port = parse_authority(request.authority, 443 if request.is_connect else 80)
        if self._route.leads_to(host, port):
            return host
        endpoint = f"{self._route.host}:{self._route.port}"
        msg = f"{endpoint} redirects to {host}:{port}. {_NOT_FOLLOWED}"
        raise _RefusedError(msg)

    def _tunnel(self, request: Request, server: socket.socket) -> None:
        if self._route.via:
            lines = (f"CONNECT {request.authority} HTTP/1.1", f"Host: {request.authority}")
            server.sendall("\r\n".join((*lines, *self._route.proxy_headers(), "", "")).encode("latin-1"))
            answer = read_head(server)
            if answer is None or answer.lines[0].split(" ")[1:2] != ["200"]:
                self._client.sendall(_error(502, "BadGateway", "The proxy of the environment does not connect"))
                return
            self._client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n" + answer.rest)
        else:
            self._client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        server.sendall(request.head.rest)
        answers = threading.Thread(target=splice, args=(server, self._client), daemon=True)
        answers.start()
        splice(self._client, server)
        _finish(server, answers)

    def _requests(self, first: Request, server: socket.socket) -> None:
        """Requests one after the other; answers are passed on as they come."""
        answers = threading.Thread(target=splice, args=(server, self._client), daemon=True)
        answers.start()
        request: Request | None = first
        try:
            while request is not None:
                server.sendall(request.forwarded(whole=bool(self._route.via), more=self._route.proxy_headers()))
                rest = relay_body(request, self._client, server)
                head = read_head(self._client, rest)
                request = Request.of(head) if head is not None else None
                if request is not None:
                    self._check(request)
        except _RefusedError as error:
            # The answer before this request has been read to its end: libraries do not send requests in advance.
            self._client.sendall(_error(403, "AccessDenied", str(error)))
        finally:
            with suppress(OSError):
                server.shutdown(socket.SHUT_WR)
            _finish(server, answers)


def _finish(server: socket.socket, answers: threading.Thread) -> None:
    """The library has said everything. What the server still answers is passed on, but not for ever."""
    answers.join(_LAST_ANSWER_S)
    with suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)
    answers.join()


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _error(status: int, code: str, message: str) -> bytes:
    """An answer in the form of S3, so that libraries show its text."""
    plain = message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{plain}</Message></Error>'.encode()
    )
    head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


def gate_address(endpoint: str, rules: AddressRules) -> GateAddress:
    """Where a library of this process reaches an endpoint, and nothing else. Starts the proxy when it is the first."""
    return _gate(os.getpid()).address_for(Route.to(endpoint, rules))


@lru_cache(maxsize=1)
def _gate(pid: int) -> Gate:
    """By process: threads do not survive a fork."""
    del pid
    return Gate()
