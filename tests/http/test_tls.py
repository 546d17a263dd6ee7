"""Connections that begin with TLS and never finish take nothing from the others."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from lading.http.connections import ConnectionLimits
from lading.http.server import HttpServer
from lading.service.security.certificates import CertificateFiles
from tests.http.test_connections import APP, LINK_TIMEOUT_S, read_all
from tests.support.certificates import Certificate, self_signed

MOST = 4


@pytest.fixture
def signed(tmp_path: Path) -> Certificate:
    return self_signed(tmp_path)


@pytest.fixture
def trust(signed: Certificate) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(signed.certificate))


def start(signed: Certificate, *, patience_s: float) -> HttpServer:
    limits = ConnectionLimits(head_timeout_s=patience_s, most_connections=MOST)
    return HttpServer(APP, limits=limits).start(tls=CertificateFiles(signed.certificate, signed.key))


@pytest.fixture
def patient(signed: Certificate) -> Iterator[HttpServer]:
    with start(signed, patience_s=120.0) as server:
        yield server


def open_link(server: HttpServer, sent: bytes = b"") -> closing[socket.socket]:
    link = socket.create_connection(("127.0.0.1", server.port), timeout=LINK_TIMEOUT_S)
    link.sendall(sent)
    return closing(link)


def half_a_handshake() -> bytes:
    """The first letters of what a client says."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()[:50]


@pytest.mark.parametrize("sent", [b"", half_a_handshake()], ids=["silent", "half"])
def test_a_handshake_that_does_not_come_is_given_up(signed: Certificate, sent: bytes) -> None:
    with start(signed, patience_s=0.3) as server, open_link(server, sent) as link:
        assert read_all(link) == b""


def test_who_speaks_no_tls_is_dropped_and_others_are_served(patient: HttpServer, trust: ssl.SSLContext) -> None:
    with open_link(patient, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") as link:
        assert b"HTTP/" not in read_all(link)
    assert httpx.get(f"https://localhost:{patient.port}/echo", verify=trust).status_code == 200


def test_the_oldest_handshake_makes_room(patient: HttpServer, trust: ssl.SSLContext) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(open_link(patient)) for _ in range(3 * MOST)]
        url = f"https://localhost:{patient.port}/echo"
        assert httpx.get(url, verify=trust, timeout=LINK_TIMEOUT_S).status_code == 200
        for link in silent[: 2 * MOST + 1]:
            assert read_all(link) == b""
        with trust.wrap_socket(silent[-1], server_hostname="localhost") as late:
            late.sendall(b"GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert late.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_who_has_not_finished_does_not_keep_the_server_from_ending(signed: Certificate) -> None:
    server = start(signed, patience_s=120.0)
    port = server.port
    with open_link(server) as link:
        server.close()
        assert read_all(link) == b""
    with HttpServer(APP).start(port=port) as again:
        assert again.port == port
