"""As much of HTTP/1.1 as a forward proxy needs: heads of requests, the length of bodies, and bytes in between."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

_MOST_HEAD_BYTES = 64 * 1024
_PIECE = 256 * 1024
_FOR_PROXIES = ("proxy-authorization", "proxy-connection")


class MalformedError(Exception):
    """What came is not HTTP/1.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """First line and headers of a message."""

    lines: tuple[str, ...]
    rest: bytes
    """What came after the head already."""

    def value(self, name: str) -> str:
        """A header; empty when it is not there."""
        for line in self.lines[1:]:
            header, _, value = line.partition(":")
            if header.lower() == name:
                return value.strip()
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a proxy: for a tunnel, or with the whole URL."""

    head: Head
    method: str
    target: str

    @classmethod
    def of(cls, head: Head) -> Request:
        """Raises MalformedError."""
        words = head.lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise MalformedError
        return cls(head=head, method=words[0], target=words[1])

    @property
    def is_connect(self) -> bool:
        """Whether a tunnel is wanted."""
        return self.method == "CONNECT"

    @property
    def authority(self) -> str:
        """Host and port that the request is for."""
        return self.target if self.is_connect else urlsplit(self.target).netloc.rpartition("@")[2]

    def forwarded(self, *, whole: bool, more: tuple[str, ...]) -> bytes:
        """The head as a server wants it; `whole`: as the next proxy wants it, with `more` headers."""
        target = self.target if whole else "/" + self.target.split("/", 3)[3] if self.target.count("/") > 2 else "/"
        kept = [line for line in self.head.lines[1:] if line.partition(":")[0].lower() not in _FOR_PROXIES]
        lines = (f"{self.method} {target} HTTP/1.1", *kept, *more, "", "")
        return "\r\n".join(lines).encode("latin-1")


def parse_authority(text: str, default_port: int) -> tuple[str, int]:
    """Host and port. Raises MalformedError."""
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port
    except ValueError as error:
        raise MalformedError from error
    if not parts.hostname:
        raise MalformedError
    return parts.hostname, port if port is not None else default_port


def read_head(peer: socket.socket, begun: bytes = b"") -> Head | None:
    """The next head; None when the peer has nothing more to say. Raises MalformedError."""
    got = begun
    while (end := got.find(b"\r\n\r\n")) < 0:
        if len(got) > _MOST_HEAD_BYTES:
            raise MalformedError
        piece = peer.recv(_PIECE)
        if not piece:
            return None
        got += piece
    lines = got[:end].decode("latin-1").split("\r\n")
    return Head(lines=tuple(lines), rest=got[end + 4 :])


def relay_body(request: Request, peer: socket.socket, to: socket.socket) -> bytes:
    """Pass the body of a request on, and return what came after it. Raises MalformedError."""
    if "chunked" in request.head.value("transfer-encoding").lower():
        return _relay_chunks(request.head.rest, peer, to)
    length = request.head.value("content-length") or "0"
    if not length.isdecimal():
        raise MalformedError
    return _relay(int(length), request.head.rest, peer, to)


def _relay(length: int, begun: bytes, peer: socket.socket, to: socket.socket) -> bytes:
    if begun and length:
        to.sendall(begun[:length])
    left = length - len(begun)
    buffer = memoryview(bytearray(min(_PIECE, max(left, 1))))
    while left > 0:
        count = peer.recv_into(buffer[: min(left, len(buffer))])
        if not count:
            raise MalformedError
        to.sendall(buffer[:count])
        left -= count
    return begun[length:]


def _relay_chunks(begun: bytes, peer: socket.socket, to: socket.socket) -> bytes:
    got = begun
    while True:
        line, got = _line(got, peer)
        to.sendall(line)
        try:
            length = int(line.split(b";")[0].strip(), 16)
        except ValueError as error:
            raise MalformedError from error
        if length == 0:
            break
        got = _relay(length + 2, got, peer, to)
    while True:  # Trailers end with an empty line.
        line, got = _line(got, peer)
        to.sendall(line)
        if line == b"\r\n":
            return got


def _line(got: bytes, peer: socket.socket) -> tuple[bytes, bytes]:
    while (end := got.find(b"\r\n")) < 0:
        piece = peer.recv(_PIECE)
        if not piece or len(got) > _MOST_HEAD_BYTES:
            raise MalformedError
        got += piece
    return got[: end + 2], got[end + 2 :]


def splice(peer: socket.socket, to: socket.socket) -> None:
    """Pass on what a peer says until it ends; then the other side is told that nothing more comes."""
    buffer = memoryview(bytearray(_PIECE))
    with suppress(OSError):
        while count := peer.recv_into(buffer):
            to.sendall(buffer[:count])
    with suppress(OSError):
        to.shutdown(socket.SHUT_WR)
