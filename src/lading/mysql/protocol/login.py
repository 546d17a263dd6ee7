"""The beginning of a connection: greeting, TLS, and the proof of who the client is.

Nothing a client says is believed before `Doorman.check` has returned: it either proves who the client is, or raises.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from lading.mysql.emulation.variables import VERSION
from lading.mysql.protocol.auth import Authenticator, is_proof, new_nonce
from lading.mysql.protocol.constants import Capabilities
from lading.mysql.protocol.errors import access_denied, malformed, plain_refused
from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.protocol.packets import (
    CAPABILITIES,
    CLEAR_PASSWORD,
    NATIVE_PASSWORD,
    SHA2_PASSWORD,
    Login,
    auth_switch,
    greeting,
    parse_login,
)
from lading.mysql.protocol.sha2 import (
    ASK_PASSWORD,
    FAST_OK,
    WANTS_KEY,
    ExchangeKey,
    clear_password,
    is_empty,
    is_sha2_proof,
)
from lading.mysql.protocol.wire import ClosedError, Incoming, Wire, frame, parse_head
from lading.service.security.bind_policy import is_elsewhere

LARGEST_LOGIN = 64 * 1024
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
    must_ask: bool = False
    """What the login says was scrambled with an old nonce."""


async def greet(sock: socket.socket, connection_id: int, peer: str, options: MysqlOptions) -> Greeted:
    """Say hello on a fresh socket and read the answer. Raises Fault for a client that would have to use TLS.

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
    if options.tls and not login.wants_tls and (options.require_tls or is_elsewhere(peer)):
        raise plain_refused()
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    """A client that has not proven who it is."""

    with_password: bool
    delay_s: float | None = None
    """Set when the failure was counted already."""


class Doorman:
    """Lets clients prove who they are."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._key = ExchangeKey()

    async def check(self, greeted: Greeted, peer: str, in_thread: InThread) -> None:
        """Prove who the client is, or raise after a delay."""
        user = greeted.login.user
        refused = await self._prove(greeted, peer, in_thread)
        if refused is None:
            await in_thread(lambda: self._authenticator.succeeded(user, peer))
            return
        delay_s = refused.delay_s
        if delay_s is None:
            delay_s = await in_thread(lambda: self._authenticator.failed(user, peer))
        await asyncio.sleep(delay_s)
        raise access_denied(user, peer, with_password=refused.with_password)

    async def _prove(self, greeted: Greeted, peer: str, in_thread: InThread) -> _Refused | None:
        """None: proven."""
        login, users = greeted.login, self._authenticator
        delay_s = await in_thread(lambda: users.delay_s(login.user, peer))
        refused = _Refused(with_password=not is_empty(login.response))
        if delay_s is None:
            return refused
        await asyncio.sleep(delay_s)  # Here and not in a thread, which others need.
        if not await in_thread(lambda: users.may_connect(login.user, peer)):
            return refused
        if login.plugin == CLEAR_PASSWORD and greeted.is_encrypted and not greeted.must_ask:
            password = clear_password(login.response)
            fits = await in_thread(lambda: users.check_password(login.user, password, peer))
            return None if fits else refused
        needs_password = await in_thread(lambda: users.is_from_directory(login.user))
        plugin, response = await self._response(greeted, needs_password=needs_password)
        if plugin == SHA2_PASSWORD:
            return await self._prove_by_sha2(greeted, peer, response, in_thread)
        kept = await in_thread(lambda: users.native_verifier(login.user))
        if kept is not None and is_proof(response, greeted.nonce, kept):
            return None
        return _Refused(with_password=bool(response))

    async def _response(self, greeted: Greeted, *, needs_password: bool) -> tuple[str, bytes]:
        """The method that the client proves itself by, and its answer.

        Clients that would use mysql_native_password by themselves say so with an empty answer: they wait to be asked.
        That method never gives the password: where it is needed, they are asked to use the other one.
        """
        login = greeted.login
        if needs_password and login.plugin != SHA2_PASSWORD:
            await greeted.wire.send(auth_switch(SHA2_PASSWORD, greeted.nonce))
            return SHA2_PASSWORD, await _read(greeted)
        is_native = login.plugin in ("", NATIVE_PASSWORD)
        plugin = NATIVE_PASSWORD if is_native else SHA2_PASSWORD
        waits = login.plugin == NATIVE_PASSWORD and not login.response
        if not greeted.must_ask and not waits and login.plugin in ("", NATIVE_PASSWORD, SHA2_PASSWORD):
            return plugin, login.response
        await greeted.wire.send(auth_switch(plugin, greeted.nonce))
        return plugin, await _read(greeted)

    async def _prove_by_sha2(
        self, greeted: Greeted, peer: str, response: bytes, in_thread: InThread
    ) -> _Refused | None:
        user, users = greeted.login.user, self._authenticator
        kept = await in_thread(lambda: users.sha2_verifier(user))
        if is_empty(response):
            return None if kept == b"" else _Refused(with_password=False)
        if kept and is_sha2_proof(response, greeted.nonce, kept):
            await greeted.wire.send(FAST_OK)
            return None
        # That the password is asked for says that the answer was wrong. So it counts now: somebody who guesses would
        # hang up here, and open many connections at once.
        delay_s = None if kept is None else await in_thread(lambda: users.failed(user, peer))
        try:
            password = await self._full_password(greeted, in_thread)
        except BaseException:
            if delay_s is None:
                await in_thread(lambda: users.failed(user, peer))
            raise
        fits = bool(password) and await in_thread(lambda: users.check_password(user, password or "", peer))
        if fits:
            return None
        return _Refused(with_password=True, delay_s=delay_s)

    async def _full_password(self, greeted: Greeted, in_thread: InThread) -> str | None:
        """Ask for the password itself, which a client sends in the clear over TLS alone. None: it cannot be read."""
        await greeted.wire.send(ASK_PASSWORD)
        answer = await _read(greeted)
        if greeted.is_encrypted:
            return clear_password(answer)
        if answer == WANTS_KEY:
            await greeted.wire.send(await in_thread(self._key.public_packet))
            answer = await _read(greeted)
        return await in_thread(lambda: self._key.decrypt(answer, greeted.nonce))


async def _read(greeted: Greeted) -> bytes:
    async with asyncio.timeout(greeted.timeout_s):
        return await greeted.wire.read(LARGEST_LOGIN)


def as_somebody_else(greeted: Greeted, login: Login) -> Greeted:
    """The same client under another name, not yet proven. It is asked again: its answer could be an old one."""
    return replace(greeted, login=login, nonce=new_nonce(), must_ask=True)


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
            lambda: protocol, sock, ssl=options.tls.context() if options.tls and encrypted else None
        )
    except OSError as error:  # also what TLS says of a client that speaks none
        raise ClosedError from error
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    return Wire(reader, writer, sequence=2, write_timeout_s=options.write_timeout_s)
