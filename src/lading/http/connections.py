"""One connection: how long it may take to say what it wants, and how many there may be at once.

uvicorn waits for the head of a request for as long as somebody keeps the connection open. Here a head that does not
come in time ends its connection. When there are too many connections, the one that has been silent for longest makes
room for a new one; when all of them are at work, the new one is told so. Sockets of the console are at work.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from lading.errors import LadingError
from lading.http.faults import CrowdedError, NotHttpError, SlowHeadError, respond

_LEFT = "Nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How patient a server is."""

    head_timeout_s: float = 15.0
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
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        self._has_begun = False
        super().on_response_complete()
        self._watch()

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
        error = NotHttpError("What came is not a request of HTTP/1.1", left=_LEFT, todo="Send one.")
        self._end_with(error)

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
        self._end_waiting(SlowHeadError(msg, left=_LEFT, todo="Send it again."))

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


def _crowded() -> CrowdedError:
    return CrowdedError("There are too many connections", left=_LEFT, todo="Try again in some seconds.")
