"""Heads that never come, too many connections, and sockets that live on."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.sync.client import connect

from lading.http.connections import ConnectionLimits
from lading.http.server import HttpServer

HALF = b"GET /echo HTTP/1.1\r\nHost: localhost\r\n"
LINK_TIMEOUT_S = 20.0


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse((await request.body()).decode())


async def talk(opened: WebSocket) -> None:
    await opened.accept()
    async for text in opened.iter_text():
        await opened.send_text(text)


APP = Starlette(routes=[Route("/echo", echo, methods=["GET", "POST"]), WebSocketRoute("/talk", talk)])


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer(APP, limits=ConnectionLimits(head_timeout_s=0.5, most_connections=4)).start() as made:
        yield made


def open_link(server: HttpServer, sent: bytes = b"") -> closing[socket.socket]:
    link = socket.create_connection(("127.0.0.1", server.port), timeout=LINK_TIMEOUT_S)
    link.sendall(sent)
    return closing(link)


def read_all(link: socket.socket) -> bytes:
    """Until the server closes it."""
    parts = []
    while part := link.recv(65536):
        parts.append(part)
    return b"".join(parts)


def read_error(link: socket.socket) -> tuple[int, str]:
    head, _, body = read_all(link).partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert b"content-type: application/json" in head
    error = json.loads(body)["error"]
    assert error.keys() == {"code", "message", "left", "todo", "facts"}
    return int(head.split(b" ", 2)[1]), error["code"]


def test_a_head_that_never_ends_is_given_up(server: HttpServer) -> None:
    with open_link(server, HALF) as link:
        assert read_error(link) == (408, "SlowHead")


def test_a_head_that_comes_in_drops_is_given_up(server: HttpServer) -> None:
    with open_link(server, HALF) as link:
        link.settimeout(0.1)
        answer = b""
        for _ in range(100):
            link.sendall(b"X: y\r\n")
            try:
                answer = link.recv(65536)
                break
            except TimeoutError:
                continue
        assert answer.startswith(b"HTTP/1.1 408 ")


def test_who_says_nothing_is_answered_nothing(server: HttpServer) -> None:
    with open_link(server) as link:
        assert read_all(link) == b""


def test_the_second_head_of_a_connection_is_given_up_too(server: HttpServer) -> None:
    with open_link(server, HALF + b"\r\n") as link:
        assert link.recv(65536).startswith(b"HTTP/1.1 200 ")
        link.sendall(HALF)
        assert read_error(link) == (408, "SlowHead")


def test_a_request_that_is_at_work_is_not_given_up(server: HttpServer) -> None:
    post = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n\r\n"
    with open_link(server, post + b"ab") as slow, open_link(server, HALF) as other:
        assert read_error(other) == (408, "SlowHead")  # So much time has passed.
        slow.sendall(b"cd")
        assert read_all(slow).endswith(b"\r\n\r\nabcd")


def test_a_socket_lives_on(server: HttpServer) -> None:
    with connect(f"ws://127.0.0.1:{server.port}/talk", proxy=None) as talking:
        for _ in range(2):
            with open_link(server, HALF) as other:
                assert read_error(other) == (408, "SlowHead")
            talking.send("still there")
            assert talking.recv(timeout=LINK_TIMEOUT_S) == "still there"


def test_when_all_are_at_work_a_new_one_is_told_so(server: HttpServer) -> None:
    with ExitStack() as stack:
        sockets = [stack.enter_context(connect(f"ws://127.0.0.1:{server.port}/talk", proxy=None)) for _ in range(4)]
        for _ in range(3):
            with open_link(server, HALF + b"\r\n") as link:
                assert read_error(link) == (503, "Crowded")
        sockets[0].send("still there")
        assert sockets[0].recv(timeout=LINK_TIMEOUT_S) == "still there"
        sockets.pop().close()
        with open_link(server, HALF.replace(b"GET", b"HEAD") + b"Connection: close\r\n\r\n") as link:
            assert read_all(link).startswith(b"HTTP/1.1 200 ")


def test_the_one_that_is_silent_for_longest_makes_room() -> None:
    limits = ConnectionLimits(head_timeout_s=60.0, most_connections=4)
    with HttpServer(APP, limits=limits).start() as server, ExitStack() as stack:
        silent = [stack.enter_context(open_link(server, HALF)) for _ in range(4)]
        assert httpx.get(f"http://127.0.0.1:{server.port}/echo", timeout=LINK_TIMEOUT_S).status_code == 200
        assert read_error(silent[0]) == (503, "Crowded")
        silent[-1].sendall(b"Connection: close\r\n\r\n")
        assert read_all(silent[-1]).startswith(b"HTTP/1.1 200 ")


def test_what_is_not_http_is_said_in_the_one_shape(server: HttpServer) -> None:
    for sent in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", HALF + b"Host: other\r\n\r\n"):
        with open_link(server, sent) as link:
            assert read_error(link) == (400, "NotHttp")


def test_a_body_that_turns_into_nonsense_ends_the_connection(server: HttpServer) -> None:
    post = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with open_link(server, post + b"nonsense\r\n") as link:
        assert read_error(link) == (400, "NotHttp")
