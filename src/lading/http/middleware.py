"""What every request of the API passes before a path sees it.

In this order: the request is for this service; a page of another site may not write; the caller is authenticated; the
body comes whole, in time, not too large, and is JSON. What is refused here has cost no thread of the paths.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lading.errors import LadingError, RequestError
from lading.http.authentication import Proofs, Sleep
from lading.http.callers import OPEN_USER, Caller
from lading.http.errors import respond
from lading.http.hosts import Hosts
from lading.http.proxies import place_peer
from lading.service.security.users import Access

if TYPE_CHECKING:  # Its libraries are an extra.
    from lading.service.security.oidc import OpenIdConnect

MOST_BODY_BYTES = 4 * 1024 * 1024
"""Four times the largest statement. JSON grows in memory: two letters here are an empty list of 56 bytes there."""
READS = frozenset({"GET", "HEAD", "OPTIONS"})
METRICS = "/metrics"
HEALTH = "/healthz"
"""Answered under any name: it tells nothing, and a health check may know no name."""
STATEMENTS = "/api/sql"
"""Its statements are looked at one by one: some only read."""
_POLICY_VIOLATION = 1008
PUBLIC = frozenset({"/api/openapi.json"})
_LEFT = "Nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorRules:
    """What is let in."""

    access: Access | None = None
    open_metrics: bool = False
    """Whether /metrics is answered to everybody: it names jobs, and Prometheus may have no password."""
    most_body_bytes: int = MOST_BODY_BYTES
    body_timeout_s: float = 30.0
    hosts: Hosts = field(default_factory=Hosts)
    """By default it is called by the names of this machine alone."""
    oidc: OpenIdConnect | None = None
    """The identity provider whose tokens are accepted."""
    sleep: Sleep = asyncio.sleep
    """How the answer to a wrong password waits."""


class Door:
    """ASGI middleware. Every path, also of a console and its sockets, is only for who calls the service by its name;
    the rest is for the paths of the API.
    """

    def __init__(self, app: ASGIApp, rules: DoorRules) -> None:
        self._app = app
        self._rules = rules
        self._proofs = Proofs(rules.access, rules.sleep, rules.oidc) if rules.access is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        place_peer(scope)
        connection = HTTPConnection(scope)
        try:
            if scope["path"] != HEALTH:
                self._rules.hosts.check(connection.headers.getlist("host"))
        except LadingError as error:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            else:
                await respond(error)(scope, receive, send)
            return
        if scope["type"] == "websocket" or not _is_ours(scope["path"]):
            await self._app(scope, receive, send)
        else:
            await self._let_in(connection, receive, send)

    async def _let_in(self, connection: HTTPConnection, receive: Receive, send: Send) -> None:
        scope = connection.scope
        try:
            if scope["method"] not in READS:
                _refuse_other_sites(connection)
            if scope["path"] not in PUBLIC:
                caller = await self._identify(connection)
                if caller.rights is not None and scope["method"] not in READS and scope["path"] != STATEMENTS:
                    caller.rights.require_changes()
                scope.setdefault("state", {})["caller"] = caller
            body = b"" if scope["method"] in READS else await self._read(connection, receive)
        except LadingError as error:
            await respond(error)(scope, receive, send)
            return
        except ClientDisconnect:
            return
        await self._app(scope, _replay(body, receive), send)

    async def _identify(self, connection: HTTPConnection) -> Caller:
        is_open = self._rules.open_metrics and connection.scope["path"] == METRICS
        if self._proofs is None or is_open:
            return Caller(user=OPEN_USER, peer=connection.client.host if connection.client else "")
        return await self._proofs.identify(connection)

    async def _read(self, connection: HTTPConnection, receive: Receive) -> bytes:
        most = self._rules.most_body_bytes
        said = connection.headers.get("content-length", "")
        if said.isdigit() and int(said) > most:
            raise _too_large(most)
        parts, size = list[bytes](), 0
        try:
            async with asyncio.timeout(self._rules.body_timeout_s):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise ClientDisconnect
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise _too_large(most)
                    if not message.get("more_body", False):
                        break
        except TimeoutError as error:
            msg = f"The body did not come within {self._rules.body_timeout_s:g} seconds"
            raise RequestError(msg, code="SlowBody", left=_LEFT, todo="Send it again.") from error
        if size and not _says_json(connection):
            msg = f"The body is said to be {connection.headers.get('content-type') or 'nothing'}, not JSON"
            raise RequestError(msg, code="MediaType", left=_LEFT, todo="Send JSON with Content-Type: application/json.")
        return b"".join(parts)


def _is_ours(path: str) -> bool:
    return path.startswith("/api/") or path == METRICS


def _refuse_other_sites(connection: HTTPConnection) -> None:
    """A browser sends forms, cookies and remembered passwords for any page that asks. It does not send JSON, nor a
    bearer token, nor leaves Origin away, for a page of another site.
    """
    scheme = connection.headers.get("authorization", "").partition(" ")[0].lower()
    if scheme == "bearer":
        return
    origin = connection.headers.get("origin")
    if origin is not None and _site(origin) != connection.headers.get("host", ""):
        msg = f"The request comes from a page of {origin}"
        raise RequestError(
            msg, code="CrossSite", left=_LEFT, todo="Use the console of this service, or a bearer token."
        )
    if scheme != "basic" and not _says_json(connection):
        msg = "The request could be a form of another site"
        raise RequestError(msg, code="MediaType", left=_LEFT, todo="Send it with Content-Type: application/json.")


def _site(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _says_json(connection: HTTPConnection) -> bool:
    kind = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _too_large(most: int) -> RequestError:
    msg = f"The body is larger than {most} bytes"
    return RequestError(msg, code="BodyTooLarge", left=_LEFT, todo="Send less at a time.", most_bytes=most)


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def once() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once
