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
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial

_log = logging.getLogger(__name__)
_NO_FILES_S = 0.1


class TlsDoor:
    """Accepts connections of one listening socket until it is closed."""

    def __init__(
        self, listening: socket.socket, context: ssl.SSLContext, make: Callable[[], asyncio.Protocol], *, most: int
    ) -> None:
        self._listening = listening
        self._context = context
        self._make = make
        self._most = most
        self._greeting: dict[asyncio.Task[None], None] = {}
        """Handshakes under way, oldest first."""
        self._begun: set[socket.socket] = set()
        self._accepting: asyncio.Task[None] | None = None

    @property
    def greeting(self) -> int:
        """How many connections have not finished their handshake."""
        return len(self._greeting)

    def open(self, patience_s: float, backlog: int) -> None:
        """Begin to accept."""
        self._listening.setblocking(False)
        self._listening.listen(backlog)
        self._accepting = asyncio.create_task(self._accept(patience_s))

    async def close(self) -> None:
        """Accept nobody, and drop those who have not finished their handshake."""
        tasks = [task for task in (self._accepting, *self._greeting) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

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
                oldest = next(iter(self._greeting))
                del self._greeting[oldest]
                oldest.cancel()
            task = asyncio.create_task(self._greet(accepted, patience_s))
            self._greeting[task] = None
            task.add_done_callback(partial(self._greeted, accepted))

    async def _greet(self, accepted: socket.socket, patience_s: float) -> None:
        self._begun.add(accepted)
        with suppress(OSError):  # Also what TLS says of who speaks none, or comes too late.
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make, accepted, ssl=self._context, ssl_handshake_timeout=patience_s
            )

    def _greeted(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._greeting.pop(task, None)
        if accepted in self._begun:
            self._begun.remove(accepted)  # It belongs to its transport, which closes it.
        else:
            accepted.close()  # It was cancelled before it began.
