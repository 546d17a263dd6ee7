"""All connections of a server, for those who ask about them or end them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lading.clock import Clock
from lading.mysql.connection import Connection
from lading.mysql.protocol.errors import KILLED, Fault
from lading.sql.syntax.spans import mask_text


@dataclass(slots=True, kw_only=True)
class Peer:
    """One connection, from its first byte to its end."""

    connection_id: int
    host: str
    port: int
    task: asyncio.Task[None]
    connection: Connection | None = None
    """None until the client is known."""
    is_proven: bool = False
    """It has shown who it is, and is about to be served."""
    is_dropped: bool = False
    """It made room for another one before it was known."""

    @property
    def user(self) -> str:
        """Who it is; the name that MySQL has for those who are not known yet, otherwise."""
        return self.connection.talk.user if self.connection is not None else "unauthenticated user"


class PeerList:
    """Changed by the loop's thread, read by all."""

    def __init__(self, clock: Clock, is_admin: Callable[[str], bool], loop: asyncio.AbstractEventLoop) -> None:
        self._clock = clock
        self._is_admin = is_admin
        self._loop = loop
        self._began_s = clock.monotonic_s()
        self._peers: dict[int, Peer] = {}
        self._last_id = 0
        self.most = 0
        self.refused = 0

    def __len__(self) -> int:
        return len(self._peers)

    def add(self, host: str, port: int, task: asyncio.Task[None]) -> Peer:
        self._last_id = self._last_id % 0xFFFFFFFF + 1
        while self._last_id in self._peers:
            self._last_id = self._last_id % 0xFFFFFFFF + 1
        peer = Peer(connection_id=self._last_id, host=host, port=port, task=task)
        self._peers[peer.connection_id] = peer
        self.most = max(self.most, len(self._peers))
        return peer

    def remove(self, peer: Peer) -> None:
        self._peers.pop(peer.connection_id, None)

    def make_room(self) -> bool:
        """Drop one that has not said who it is; says whether there was one.

        It is the oldest one of the address that has most of them: who opens many and says nothing drops their own.
        """
        unknown = [peer for peer in self._peers.values() if peer.connection is None and not peer.is_proven]
        if not unknown:
            return False
        hosts = Counter(peer.host for peer in unknown)
        dropped = max(unknown, key=lambda peer: hosts[peer.host])
        self.remove(dropped)
        dropped.is_dropped = True
        dropped.task.cancel()
        return True

    def end_unknown(self) -> None:
        """Drop those who have not said who they are."""
        for peer in list(self._peers.values()):
            if peer.connection is None:
                peer.task.cancel()

    def known(self) -> list[Connection]:
        """Connections of clients that are known."""
        return [peer.connection for peer in list(self._peers.values()) if peer.connection is not None]

    def processes(self, user: str) -> Iterable[Sequence[Any]]:
        """Rows of SHOW PROCESSLIST: one's own, or all. Secrets in statements are masked."""
        now_s = self._clock.monotonic_s()
        sees_all = self._is_admin(user)
        for peer in list(self._peers.values()):
            connection = peer.connection
            if not sees_all and peer.user != user:
                continue
            head = (peer.connection_id, peer.user, f"{peer.host}:{peer.port}")
            if connection is None:
                yield (*head, None, "Connect", 0, "login", None)
                continue
            text = connection.statement
            for_s = int(now_s - connection.since_s) if connection.since_s else 0
            doing = ("Query", for_s, "executing", mask_text(text)) if text else ("Sleep", for_s, "", None)
            yield (*head, connection.talk.database, *doing)

    def status(self) -> Iterable[tuple[str, str]]:
        """Rows of SHOW STATUS."""
        running = sum(1 for connection in self.known() if connection.statement)
        return [
            ("Aborted_connects", str(self.refused)),
            ("Max_used_connections", str(self.most)),
            ("Threads_connected", str(len(self))),
            ("Threads_running", str(running)),
            ("Uptime", str(int(self._clock.monotonic_s() - self._began_s))),
        ]

    def kill(self, user: str, connection_id: int, *, whole: bool) -> None:
        """End a connection, or what it runs."""
        peer = self._peers.get(connection_id)
        if peer is None or peer.connection is None:
            raise Fault(1094, "HY000", f"Unknown thread id: {connection_id}")
        if peer.user != user and not self._is_admin(user):
            raise Fault(1095, "HY000", f"You are not owner of thread {connection_id}")
        connection = peer.connection
        end = (lambda: connection.end(KILLED)) if whole else connection.interrupt
        self._loop.call_soon_threadsafe(end)
