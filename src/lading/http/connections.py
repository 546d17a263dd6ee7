"""One connection: how long it may take to say what it wants, and how many there may be at once.

uvicorn waits for the head of a request for as long as somebody keeps the connection open. Here a head that does not
come in time ends its connection. When there are too many connections, the one that has been silent for longest makes
room for a new one; when all of them are at work, the new one is told so. Sockets of the console are at work.

h11 bounds only what is incomplete: a head that comes whole, in one read of a quarter of a megabyte, would pass whatever
its size, also behind another request. So it is given what came in small pieces, and nothing of the next request before
the present one was answered.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from lading.errors import LadingError, RequestError, UnavailableError
from lading.http.errors import respond

_LEFT = "Nothing was changed."
_PIECE_OF_HEAD = 1024
_PIECE_OF_BODY = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How patient a server is."""

    head_timeout_s: float = 15.0
    head_bytes: int = 16 * 1024
    """Of a head with all its lines, of the line before a chunk, and of what follows a body."""
    most_connections: int = 512
    """Half of the files that a process may have open by default."""


class PatientProtocol(H11Protocol):
    """A connection that waits for a head, then is at work until it has answered, then waits again."""

    limits: ClassVar[ConnectionLimits]
    waiting: ClassVar[dict[PatientProtocol, asyncio.TimerHandle]]
    """Connections of this server that wait for a head, oldest first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._has_begun = False
        """Something of the next head came."""
        self._is_upgraded = False
        self._is_refused = False
        self._held = b""
        """What came and was not looked at yet."""
        if len(self.connections) > self.limits.most_connections:
            oldest = next(iter(self.waiting), None)
            if oldest is None:
                self._is_refused = True
            else:
                oldest._make_room()  # noqa: SLF001 - of the same class
        self._watch()

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            # Answered only now: what is closed with unread bytes is reset, and nobody would read the answer.
            self._end_with(_crowded())
            return
        self._has_begun = True
        self._held += data
        self._feed()
        self._watch()

    def on_response_complete(self) -> None:
        self._has_begun = bool(self._held)
        super().on_response_complete()
        self._feed()
        self._watch()

    def _feed(self) -> None:
        """Have h11 read what came, piece by piece, until it needs more or has a whole request to answer."""
        while self._held and not self.transport.is_closing():
            receiver = self.transport.get_protocol()
            if receiver is not self:  # A socket of the console now.
                rest, self._held = self._held, b""
                cast("asyncio.Protocol", receiver).data_received(rest)
                return
            if self.conn.their_state is h11.DONE:
                self.flow.pause_reading()
                return
            size = _PIECE_OF_HEAD if self.conn.their_state is h11.IDLE else _PIECE_OF_BODY
            piece, self._held = self._held[:size], self._held[size:]
            super().data_received(piece)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._is_upgraded = True
        self._watch()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What came is not HTTP. Said in the one shape of errors, unless an answer is on its way already."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()
            return
        why = sys.exc_info()[1]
        if (
            isinstance(why, h11.RemoteProtocolError)
            and why.error_status_hint == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        ):
            large = f"The head of the request is larger than {self.limits.head_bytes} bytes"
            self._end_with(
                RequestError(
                    large, code="HeadTooLarge", left=_LEFT, todo="Send fewer or shorter headers, or a shorter address."
                )
            )
            return
        self._end_with(
            RequestError("Malformed HTTP/1.1 request", code="NotHttp", left=_LEFT, todo="Send a request of HTTP/1.1.")
        )

    def _watch(self) -> None:
        """Start to wait for a head, go on, or stop. Waiting that has begun is not made longer by a few more bytes."""
        is_waiting = self.cycle is None or self.cycle.response_complete
        if not is_waiting or self._is_upgraded or self.transport.is_closing():
            self._stop_waiting()
        elif self not in self.waiting:
            self.waiting[self] = self.loop.call_later(self.limits.head_timeout_s, self._give_up)

    def _stop_waiting(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()

    def _give_up(self) -> None:
        msg = f"The head of the request did not come within {self.limits.head_timeout_s:g} seconds"
        self._end_waiting(RequestError(msg, code="SlowHead", left=_LEFT, todo="Send it again."))

    def _make_room(self) -> None:
        self._end_waiting(_crowded())

    def _end_waiting(self, error: LadingError) -> None:
        """Who sent nothing expects no answer, and who sends what was refused already had one."""
        if (self._has_begun or self._is_refused) and self.conn.their_state is h11.IDLE:
            self._end_with(error)
        else:
            self._stop_waiting()
            self.transport.close()

    def _end_with(self, error: LadingError) -> None:
        self._stop_waiting()
        if self.transport.is_closing():
            return
        answer = respond(error, {"connection": "close"})
        lines = [f"HTTP/1.1 {answer.status_code} {HTTPStatus(answer.status_code).phrase}".encode()]
        lines += [name + b": " + value for name, value in answer.raw_headers]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
        self.transport.close()


def protocol_with(given: ConnectionLimits) -> type[PatientProtocol]:
    """Connections of one server."""
    held: dict[str, Any] = {"limits": given, "waiting": {}}
    return type("PatientProtocol", (PatientProtocol,), held)


def _crowded() -> UnavailableError:
    return UnavailableError(
        "There are too many connections", code="Crowded", left=_LEFT, todo="Try again in some seconds."
    )
