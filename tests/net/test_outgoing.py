"""Requests to hosts that a statement names."""

from __future__ import annotations

import socket
import ssl
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lading.errors import UnavailableError
from lading.net.addresses import EVERY_PRIVATE, AddressRules
from lading.net.outgoing import Outgoing
from lading.testing.clock import ManualClock
from lading.testing.marked import secret
from tests.support.certificates import self_signed


@contextmanager
def dripping(first: bytes) -> Iterator[tuple[int, threading.Event]]:
    """A server that begins an answer, and goes on with a letter now and then, for ever."""
    listener, gone = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(65536)
            client.sendall(first)
            try:
                while not gone.wait(0.05):
                    client.sendall(b"x")
            except OSError:
                gone.set()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1], gone
    finally:
        gone.set()
        thread.join()
        listener.close()


@pytest.mark.parametrize(("scheme", "first"), [("http", b"HTTP/1.1 200 OK\r\nX: "), ("https", b"\x16\x03\x03\x40\x00")])
def test_an_answer_that_drips_is_cut_off(scheme: str, first: bytes) -> None:
    with dripping(first) as (port, gone):
        with pytest.raises(UnavailableError, match=r"no answer within 0\.5 seconds"):
            Outgoing(rules=EVERY_PRIVATE, timeout_s=0.5).post(f"{scheme}://127.0.0.1:{port}/x", b"{}", {})
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


def test_a_header_that_cannot_be_sent_is_not_shown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        for value in (f"Bearer {secret('line')}\nX: y", f"Bearer {secret('letter')}\u2603"):
            with pytest.raises(UnavailableError) as caught:
                Outgoing(rules=EVERY_PRIVATE, timeout_s=10.0).post(url, b"{}", {"Authorization": value})
            assert "Bearer" not in "".join(traceback.format_exception(caught.value)).partition("UnavailableError")[2]
            assert caught.value.__cause__ is None


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    made = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            client, _ = listener.accept()
            with client, suppress(OSError), context.wrap_socket(client, server_side=True) as secured:
                secured.recv(65536)

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
        with pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
            Outgoing(rules=EVERY_PRIVATE, timeout_s=30.0).post(url, b"{}", {})
        thread.join()


class HurryingClock(ManualClock):
    """Four seconds pass between any two looks at it."""

    def monotonic_s(self) -> float:
        self.sleep(4)
        return super().monotonic_s()


def test_all_addresses_of_a_name_share_one_time() -> None:
    with socket.create_server(("127.0.0.3", 0)) as listener:  # At the first two nobody listens.
        url = f"http://many.example:{listener.getsockname()[1]}/"
        outgoing = Outgoing(
            rules=EVERY_PRIVATE,
            timeout_s=10.0,
            resolver=lambda host: ("127.0.0.1", "127.0.0.2", "127.0.0.3"),
            clock=HurryingClock(),
        )
        with pytest.raises(UnavailableError, match="no answer within 10 seconds"):
            outgoing.post(url, b"{}", {})
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_name_with_many_addresses_is_given_up_after_the_first_ones() -> None:
    with socket.create_server(("127.0.0.5", 0)) as listener:
        url = f"http://many.example:{listener.getsockname()[1]}/"
        addresses = tuple(f"127.0.0.{number}" for number in range(1, 6))
        with pytest.raises(UnavailableError, match="ConnectionRefusedError"):
            Outgoing(rules=EVERY_PRIVATE, timeout_s=10.0, resolver=lambda host: addresses).post(url, b"{}", {})


def test_little_of_what_a_server_says_is_kept() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                client.sendall(b"x" * 20_000 + b"\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(UnavailableError, match="BadStatusLine: xxx") as caught:
            Outgoing(rules=EVERY_PRIVATE, timeout_s=30.0).post(
                f"http://127.0.0.1:{listener.getsockname()[1]}/", b"{}", {}
            )
        thread.join()
    assert len(caught.value.what) < 300
