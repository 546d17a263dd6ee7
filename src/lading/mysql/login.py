"""The beginning of a connection: greeting, TLS, and the proof of who the client is.

Nothing a client says is believed before `check` has returned: it either proves who the client is, or raises.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from mysql_mimic.types import Capabilities

from lading.mysql.auth import Authenticator, is_proof, new_nonce
from lading.mysql.faults import access_denied, malformed
from lading.mysql.options import MysqlOptions
from lading.mysql.packets import (
    CAPABILITIES,
    CLEAR_PASSWORD,
    NATIVE_PASSWORD,
    Login,
    auth_switch,
    greeting,
    parse_login,
)
from lading.mysql.variables import VERSION
from lading.mysql.wire import ClosedError, Incoming, Wire, frame, parse_head

LARGEST_LOGIN = 64 * 1024
_ASK_ANEW = "?"
T = TypeVar("T")


class InThread(Protocol):
    """Runs something in a worker thread."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeted:
    """A client that has answered, and is not yet known."""

    wire: Wire
    login: Login
    nonce: bytes
    is_encrypted: bool
    timeout_s: float
    """How long it may take for another answer."""


async def greet(sock: socket.socket, connection_id: int, options: MysqlOptions) -> Greeted:
    """Say hello on a fresh socket and read the answer.

    The first answer is read from the bare socket, byte for byte: when the client asks for TLS, what follows belongs
    to TLS and must not have been read into a buffer.
    """
    loop = asyncio.get_running_loop()
    offered = CAPABILITIES | (Capabilities.CLIENT_SSL if options.tls else Capabilities(0))
    nonce, patience = new_nonce(), options.handshake_timeout_s
    await loop.sock_sendall(sock, frame(0, greeting(VERSION, connection_id, nonce, offered)))
    size = parse_head(await _receive(sock, 4), expected=1, limit=LARGEST_LOGIN)
    login = parse_login(await _receive(sock, size), offered)
    if login.wants_tls and options.tls is None:
        msg = "TLS was not offered"
        raise malformed(msg)
    wire = await _open_wire(sock, options, encrypted=login.wants_tls)
    if not login.wants_tls:
        return Greeted(wire=wire, login=login, nonce=nonce, is_encrypted=False, timeout_s=patience)
    try:
        again = parse_login(await wire.read(LARGEST_LOGIN), offered)
        if again.wants_tls:
            msg = "TLS was asked for twice"
            raise malformed(msg)
    except BaseException:
        await wire.close()
        raise
    return Greeted(wire=wire, login=again, nonce=nonce, is_encrypted=True, timeout_s=patience)


async def check(greeted: Greeted, peer: str, authenticator: Authenticator, in_thread: InThread) -> None:
    """Prove who the client is, or raise after a delay."""
    user = greeted.login.user
    if await _is_proven(greeted, peer, authenticator, in_thread):
        await in_thread(lambda: authenticator.succeeded(user, peer))
        return
    await asyncio.sleep(await in_thread(lambda: authenticator.failed(user, peer)))
    raise access_denied(user, peer, with_password=bool(greeted.login.response))


async def _is_proven(greeted: Greeted, peer: str, authenticator: Authenticator, in_thread: InThread) -> bool:
    login, wire = greeted.login, greeted.wire
    delay_s = await in_thread(lambda: authenticator.delay_s(login.user, peer))
    if delay_s is None:
        return False
    await asyncio.sleep(delay_s)  # Here and not in a thread, which others need.
    if not await in_thread(lambda: authenticator.may_connect(login.user, peer)):
        return False
    if login.plugin == CLEAR_PASSWORD and greeted.is_encrypted:
        password = login.response.rstrip(b"\0").decode("utf-8", "replace")
        return await in_thread(lambda: authenticator.check_password(login.user, password, peer))
    response = login.response
    if login.plugin not in ("", NATIVE_PASSWORD):
        await wire.send(auth_switch(NATIVE_PASSWORD, greeted.nonce))
        async with asyncio.timeout(greeted.timeout_s):
            response = await wire.read(LARGEST_LOGIN)
    kept = await in_thread(lambda: authenticator.native_verifier(login.user))
    return kept is not None and is_proof(response, greeted.nonce, kept)


def as_somebody_else(greeted: Greeted, login: Login) -> Greeted:
    """The same client under another name, not yet proven. It is asked anew: its answer could be an old one."""
    return replace(greeted, login=replace(login, plugin=_ASK_ANEW), nonce=new_nonce())


async def _receive(sock: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    parts: list[bytes] = []
    while size:
        try:
            part = await loop.sock_recv(sock, size)
        except OSError as error:
            raise ClosedError from error
        if not part:
            raise ClosedError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


async def _open_wire(sock: socket.socket, options: MysqlOptions, *, encrypted: bool) -> Wire:
    loop = asyncio.get_running_loop()
    reader = Incoming(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    try:
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, sock, ssl=options.tls if encrypted else None
        )
    except OSError as error:  # also what TLS says of a client that speaks none
        raise ClosedError from error
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    return Wire(reader, writer, sequence=2, write_timeout_s=options.write_timeout_s)
