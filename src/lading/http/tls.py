"""Connections with TLS.

The server of asyncio waits for a minute for each TLS handshake, and its protocols hear of a connection only after it:
who opens connections and says nothing takes all files of the process, and no limit counts them. So connections are
accepted here, and a handshake has to come as soon as the head of a request. When there are too many, the oldest that
has not come makes room.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

from lading.service.security.certificates import CertificateFiles

_log = logging.getLogger(__name__)
_NO_FILES_S = 0.1


class TlsDoor:
    """Accepts connections of one listening socket until it is closed."""

    def __init__(
        self, listening: socket.socket, tls: CertificateFiles, make: Callable[[], asyncio.Protocol], *, most: int
    ) -> None:
        self._listening = listening
        self._tls = tls
        self._make = make
        self._most = most
        self._greeting: dict[asyncio.Task[None], socket.socket] = {}
        """Handshakes under way, oldest first."""
        self._accepting: asyncio.Task[None] | None = None

    @property
    def greeting(self) -> int:
        """How many connections have not finished their handshake."""
        return len(self._greeting)

    def open(self, patience_s: float, backlog: int) -> None:
        self._listening.setblocking(False)
        self._listening.listen(backlog)
        self._accepting = asyncio.create_task(self._accept(patience_s))

    async def close(self) -> None:
        """Accept nobody, and drop those who have not finished their handshake."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
        greeting = dict(self._greeting)
        for accepted in greeting.values():
            _hang_up(accepted)
        await asyncio.gather(*greeting, return_exceptions=True)

    async def _accept(self, patience_s: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                # The machine has no more files. Those who wait are taken when others have ended.
                _log.warning("A connection could not be accepted: %s", error)
                await asyncio.sleep(_NO_FILES_S)
                continue
            if len(self._greeting) >= self._most:
                _hang_up(self._greeting.pop(next(iter(self._greeting))))
            task = asyncio.create_task(self._greet(accepted, patience_s))
            self._greeting[task] = accepted
            task.add_done_callback(lambda done: self._greeting.pop(done, None))

    async def _greet(self, accepted: socket.socket, patience_s: float) -> None:
        with suppress(OSError):  # Also what TLS says of who speaks none, or comes too late.
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make, accepted, ssl=self._tls.context(), ssl_handshake_timeout=patience_s
            )


def _hang_up(accepted: socket.socket) -> None:
    """As if the client had gone. The socket belongs to its transport, which closes it then."""
    with suppress(OSError):
        accepted.shutdown(socket.SHUT_RDWR)
