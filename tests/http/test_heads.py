"""The limit of a head holds however the head comes: at once, in pieces, behind another request, after a body."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from websockets.sync.client import connect

from lading.http.connections import ConnectionLimits
from lading.http.server import HttpServer
from tests.http.test_connections import APP, open_link, read_all, read_error

MOST = 16 * 1024
GOOD = b"GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
FIRST = b"GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"


def head(size: int, line: bytes) -> bytes:
    """A whole head of about this size, of lines like this one."""
    return FIRST[:-2] + line * (size // len(line)) + b"Connection: close\r\n\r\n"


LARGE = {
    "one long line": head(2 * MOST, b"X-Long: " + b"x" * (2 * MOST - 10) + b"\r\n"),
    "many short lines": head(2 * MOST, b"a:b\r\n"),
    "a quarter of a megabyte": head(250_000, b"X-Much: " + b"x" * 100 + b"\r\n"),
    "a long address": b"GET /echo?" + b"x" * 2 * MOST + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "folded lines": FIRST[:-2] + b"X-Fold: a\r\n" + b" b\r\n" * (MOST // 2) + b"\r\n",
}


@pytest.fixture(scope="module")
def server() -> Iterator[HttpServer]:
    with HttpServer(APP, limits=ConnectionLimits(head_timeout_s=15.0)).start() as made:
        yield made


def push(link: socket.socket, data: bytes) -> None:
    """Send as much as the server takes; it may answer and close before it has read everything."""
    try:
        link.sendall(data)
    except OSError:
        return


@pytest.mark.parametrize("form", LARGE)
def test_a_large_head_is_refused_when_it_comes_at_once(server: HttpServer, form: str) -> None:
    with open_link(server) as link:
        push(link, LARGE[form])
        assert statuses(read_until_closed(link)) in ([431], [])  # None: reset, because it had not read all of it.


@pytest.mark.parametrize("form", LARGE)
def test_a_large_head_is_refused_behind_another_request(server: HttpServer, form: str) -> None:
    """The first is answered; the second waited in the buffer, whole, and was read whatever its size."""
    with open_link(server) as link:
        push(link, FIRST + LARGE[form])
        answers = read_until_closed(link)
    assert statuses(answers) in ([200, 431], [200], [])  # Fewer: reset, because it had not read all of it.


def test_a_head_below_the_limit_is_answered(server: HttpServer) -> None:
    for line in (b"a:b\r\n", b"X-Some: " + b"x" * 1000 + b"\r\n"):
        with open_link(server, head(MOST - 2000, line)) as link:
            assert statuses(read_all(link)) == [200]


def test_requests_that_come_together_are_all_answered(server: HttpServer) -> None:
    bodies = [b"x" * 40_000, b"", b"y" * 300_000]
    sent = b"".join(
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(b) + b for b in bodies
    )
    with open_link(server, sent + GOOD) as link:
        answers = read_all(link)
    assert statuses(answers) == [200] * 4
    assert all(body in answers for body in bodies)


@pytest.mark.parametrize(
    "tail",
    [
        b"1;" + b"x" * 2 * MOST + b"\r\na\r\n0\r\n\r\n",
        b"1\r\na\r\n0\r\n" + b"X-Trailer: 1\r\n" * (3 * MOST // 14) + b"\r\n",
    ],
    ids=["before a chunk", "after the body"],
)
def test_what_is_around_chunks_is_bounded_too(server: HttpServer, tail: bytes) -> None:
    with open_link(server) as link:
        push(link, POST + tail)
        assert statuses(read_until_closed(link)) in ([400], [431], [])


def test_it_says_what_to_do(server: HttpServer) -> None:
    with open_link(server, FIRST[:-2] + b"X: " + b"x" * MOST) as link:
        assert read_error(link) == (431, "HeadTooLarge")


def test_a_socket_still_opens_and_talks_at_once(server: HttpServer) -> None:
    with connect(f"ws://127.0.0.1:{server.port}/talk", proxy=None) as opened:
        for size in (1, 100_000):
            opened.send("z" * size)
            assert opened.recv(timeout=20) == "z" * size


def read_until_closed(link: socket.socket) -> bytes:
    parts = []
    try:
        while part := link.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def statuses(answers: bytes) -> list[int]:
    return [int(part.split(b" ", 2)[1]) for part in answers.split(b"HTTP/1.1")[1:] for part in [b"HTTP/1.1" + part]]
