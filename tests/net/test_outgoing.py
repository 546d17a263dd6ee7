"""Requests to hosts that a statement names."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence

import pytest

from lading.errors import UnavailableError
from lading.net.addresses import EVERY_PRIVATE, AddressRules
from lading.net.outgoing import Outgoing


@pytest.fixture
def dripping() -> Iterator[tuple[int, threading.Event]]:
    """A server that answers with one letter of a header now and then, for ever."""
    listener, gone = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(65536)
            client.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            try:
                while not gone.wait(0.05):
                    client.sendall(b"x")
            except OSError:
                gone.set()

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()[1], gone
    gone.set()
    thread.join()
    listener.close()


def test_an_answer_that_drips_is_cut_off(dripping: tuple[int, threading.Event]) -> None:
    port, gone = dripping
    with pytest.raises(UnavailableError, match=r"no answer within 0\.3 seconds"):
        Outgoing(rules=EVERY_PRIVATE, timeout_s=0.3).post(f"http://127.0.0.1:{port}/x", b"{}", {})
    assert gone.wait(30)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://inner.example/", "http://2130706433/", "http://[::1]/"])
def test_an_address_that_the_rules_do_not_allow_is_not_connected_to(url: str) -> None:
    def resolver(host: str) -> Sequence[str]:
        return ("93.184.216.34", "10.0.0.7")

    with pytest.raises(UnavailableError, match="an address that this statement must not reach"):
        Outgoing(rules=AddressRules(), timeout_s=1.0, resolver=resolver).post(url, b"{}", {})


def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    asked: list[str] = []

    def resolver(host: str) -> Sequence[str]:
        asked.append(host)
        return ("127.0.0.1",)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer() -> None:
            client, _ = listener.accept()
            with client:
                said.append(client.recv(65536))
                client.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

        said: list[bytes] = []
        thread = threading.Thread(target=answer)
        thread.start()
        outgoing = Outgoing(rules=EVERY_PRIVATE, timeout_s=10.0, resolver=resolver)
        assert outgoing.post(f"http://hooks.example:{port}/a?b=1", b"{}", {"X-Y": "z"}) == 204
        thread.join()
    assert asked == ["hooks.example"]
    assert said[0].startswith(b"POST /a?b=1 HTTP/1.1\r\n")
    assert f"Host: hooks.example:{port}".encode() in said[0]
    assert said[0].count(b"Host:") == 1
