"""The server: a loop in a thread of its own, and the connections in it."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from lading.errors import ConfigError
from lading.mysql.connection import Connection, ServerContext
from lading.mysql.emulation.statements import Connected, Talk
from lading.mysql.emulation.variables import Variables, charset_named
from lading.mysql.protocol import packets
from lading.mysql.protocol.auth import Authenticator, LocalRoot
from lading.mysql.protocol.constants import ServerStatus
from lading.mysql.protocol.errors import SHUTDOWN, TOO_MANY_CONNECTIONS, Fault, fault_of
from lading.mysql.protocol.login import Doorman, Greeted, greet
from lading.mysql.protocol.options import MysqlOptions
from lading.mysql.protocol.peers import Peer, PeerList
from lading.mysql.protocol.wire import ClosedError, frame
from lading.service.facade import Lading
from lading.service.limits.fair_semaphore import FairTurns
from lading.service.security.origin import Face, Origin

_log = logging.getLogger(__name__)
T = TypeVar("T")
_BACKLOG = 1024
_AT_THE_DESK = 4
_LAST_S = 4.0
"""How long connections may take to end when their statements were ended: a last packet, and TLS."""


class MysqlServer:
    """Serves a home to MySQL clients, from `start` to `close`."""

    def __init__(
        self, lading: Lading, *, authenticator: Authenticator | None = None, options: MysqlOptions | None = None
    ) -> None:
        self._lading = lading
        self._authenticator = authenticator or LocalRoot()
        self._doorman = Doorman(self._authenticator)
        self._options = options or MysqlOptions()
        self._thread: threading.Thread | None = None
        self._port: Future[int] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None
        self._peers: PeerList | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._executor = ThreadPoolExecutor(self._options.workers, thread_name_prefix="lading-mysql")
        # Passwords are not looked at in the place of somebody's statement.
        self._doormen = ThreadPoolExecutor(self._options.login_workers, thread_name_prefix="lading-mysql-login")
        self._turns = FairTurns(self._options.workers, self._options.workers_each)
        self._door_turns = FairTurns(self._options.login_workers, self._options.login_workers_each)
        # Neither those statements nor those guesses keep people out, or keep them from ending a statement.
        self._desk = ThreadPoolExecutor(_AT_THE_DESK, thread_name_prefix="lading-mysql-desk")

    def start(self) -> Self:
        """Listen. Returns when clients can connect; raises ConfigError when the port cannot be had."""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="lading-mysql-loop", daemon=True)
        self._thread.start()
        try:
            self._port.result()
        except OSError as error:
            self._shut()
            place = f"{self._options.host}:{self._options.port}"
            msg = f"MySQL clients cannot be served on {place}: {error.strerror}"
            raise ConfigError(msg, left="Nothing was started.", todo="Choose another port or address.") from error
        return self

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._port.result()

    @property
    def connections(self) -> int:
        """Open connections, also of clients that are not known yet."""
        return len(self._peers) if self._peers is not None else 0

    def close(self) -> None:
        """Take no more clients, let running statements end for a while, and end all connections."""
        if self._thread is None or self._loop is None or self._closing is None:
            return
        with suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        self._shut()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _shut(self) -> None:
        for pool in (self._executor, self._doormen, self._desk):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        self._peers = PeerList(self._lading.clock, self._authenticator.is_admin, self._loop)
        try:
            listening = await self._listen()
        except OSError as error:
            self._port.set_exception(error)
            return
        with listening:
            self._port.set_result(listening.getsockname()[1])
            accepting = asyncio.create_task(self._accept(listening, self._peers))
            await self._closing.wait()
            accepting.cancel()
            with suppress(asyncio.CancelledError):
                await accepting
        await self._end_all(self._peers)

    async def _listen(self) -> socket.socket:
        found = await asyncio.get_running_loop().getaddrinfo(
            self._options.host, self._options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        listening = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
        listening.setblocking(False)
        return listening

    async def _accept(self, listening: socket.socket, peers: PeerList) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, address = await loop.sock_accept(listening)
            except OSError as error:
                # The machine has no more sockets. Those that wait are taken when others have ended.
                _log.warning("A client could not be accepted: %s", error)
                await asyncio.sleep(0.1)
                continue
            task = asyncio.create_task(self._client(sock, peers, str(address[0]), int(address[1])))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _client(self, sock: socket.socket, peers: PeerList, host: str, port: int) -> None:
        with sock:
            if len(peers) >= self._options.max_connections and not peers.make_room():
                peers.refused += 1
                await _refuse(sock, 0, TOO_MANY_CONNECTIONS)
                return
            task = asyncio.current_task()
            if task is None:  # pragma: no cover - this runs in a task, always
                return
            peer = peers.add(host, port, task)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                await self._greeted(sock, peers, peer)
            except OSError:
                peers.refused += 1
            except asyncio.CancelledError:
                if not peer.is_dropped:
                    raise
                peers.refused += 1
                with suppress(OSError):  # One that has begun with TLS, or takes nothing, is not told.
                    sock.send(frame(2, packets.bare_error(TOO_MANY_CONNECTIONS)))
            except Exception:  # noqa: BLE001 - the door of a task: others live on
                _log.exception("A connection failed in a way that nobody expected")
            finally:
                peers.remove(peer)

    async def _greeted(self, sock: socket.socket, peers: PeerList, peer: Peer) -> None:
        try:
            async with asyncio.timeout(self._options.handshake_timeout_s):
                greeted = await greet(sock, peer.connection_id, peer.host, self._options)
        except (ClosedError, TimeoutError):
            peers.refused += 1
            return
        except Fault as fault:
            peers.refused += 1
            await _refuse(sock, 2, fault)
            return
        try:
            await self._known(greeted, peers, peer)
        finally:
            await greeted.wire.close()
            if peer.connection is not None:
                await peer.connection.finish()

    async def _known(self, greeted: Greeted, peers: PeerList, peer: Peer) -> None:
        async def become(somebody: Greeted) -> Talk:
            await self._doorman.check(somebody, peer.host, partial(self._at_the_door, peer.host))
            peer.is_proven = True
            return await self._at_the_desk(lambda: self._open_talk(somebody, peers, peer))

        try:
            talk = await become(greeted)
        except (ClosedError, TimeoutError):
            peers.refused += 1
            return
        except Exception as error:  # noqa: BLE001 - the door: whatever it is, the client is told
            peers.refused += 1
            with suppress(ClosedError):
                await greeted.wire.send(packets.error(fault_of(error)))
            return
        house = ServerContext(options=self._options, pool=self._in_thread, desk=self._at_the_desk, become=become)
        peer.connection = Connection(greeted, talk, house)
        with suppress(ClosedError):
            await greeted.wire.send(packets.ok(ServerStatus.SERVER_STATUS_AUTOCOMMIT))
            await peer.connection.serve()

    def _open_talk(self, greeted: Greeted, peers: PeerList, peer: Peer) -> Talk:
        login = greeted.login
        variables = Variables(
            {
                "max_allowed_packet": self._options.max_packet_bytes,
                "max_connections": self._options.max_connections,
                "wait_timeout": int(self._options.idle_timeout_s),
                "interactive_timeout": int(self._options.idle_timeout_s),
                "have_ssl": "YES" if self._options.tls else "DISABLED",
                "require_secure_transport": "ON" if self._options.require_tls else "OFF",
                "port": self.port,
                "query_timeout": int(self._lading.queries.limits.seconds),
            }
        )
        variables.set_names(charset_named(login.charset))
        connected = Connected(
            connection_id=peer.connection_id,
            host=peer.host,
            variables=variables,
            peers=peers,
            sees=self._authenticator.sees,
            cipher=greeted.wire.cipher,
        )
        talk = Talk(self._lading.session(login.user, origin=Origin(face=Face.MYSQL, peer=peer.host)), connected)
        if login.database:
            talk.use(login.database)
        return talk

    def _in_thread(self, user: str, work: Callable[[], T]) -> asyncio.Future[T]:
        task = asyncio.create_task(self._turns.run(user, lambda: _run_in(self._executor, work)))
        task.add_done_callback(_looked_at)
        return task

    async def _at_the_door(self, host: str, work: Callable[[], T]) -> T:
        return await self._door_turns.run(host, lambda: _run_in(self._doormen, work))

    def _at_the_desk(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return _run_in(self._desk, work)

    async def _end_all(self, peers: PeerList) -> None:
        peers.end_unknown()
        for connection in peers.known():
            connection.end_gently(SHUTDOWN)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._options.close_grace_s)
        left = list(self._tasks)
        for task in left:
            task.cancel()  # What their threads do is ended, too.
        if left:
            await asyncio.wait(left, timeout=_LAST_S)


def _run_in(pool: ThreadPoolExecutor, work: Callable[[], T]) -> asyncio.Future[T]:
    future = asyncio.get_running_loop().run_in_executor(pool, work)
    future.add_done_callback(_looked_at)
    return future


def _looked_at(future: asyncio.Future[Any]) -> None:
    """Nobody waits for a statement that was killed; its error is not news."""
    if not future.cancelled():
        future.exception()


async def _refuse(sock: socket.socket, sequence: int, fault: Fault) -> None:
    """Tell a client why it is not served, and give it a moment to read that."""
    loop = asyncio.get_running_loop()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await loop.sock_sendall(sock, frame(sequence, packets.bare_error(fault)))
            sock.shutdown(socket.SHUT_WR)
            while await loop.sock_recv(sock, 64 * 1024):
                pass
