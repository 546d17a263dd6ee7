"""On a real socket: bodies that are not JSON, too large, or never come; TLS; a port that is taken."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from lading.errors import ConfigError
from lading.http.middleware import MOST_BODY_BYTES
from lading.http.server import HttpServer
from lading.service.security.certificates import CertificateFiles
from tests.http.rig import Rig, rules
from tests.support.certificates import self_signed


@pytest.fixture
def server(loaded: Rig) -> Iterator[HttpServer]:
    with HttpServer(loaded.app(under=rules(body_timeout_s=0.3))) as made:
        yield made.start()


def say(server: HttpServer, head: str, body: bytes = b"") -> tuple[int, dict[str, object]]:
    """Send bytes as they are and read the answer."""
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=10)) as link:
        link.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        answer = b""
        while not _is_whole(answer):
            part = link.recv(65536)
            if not part:
                break
            answer += part
    status = int(answer.split(b" ", 2)[1])
    return status, json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


def _is_whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().splitlines() if line.startswith(b"content-length:")]
    return bool(found and lengths and len(body) >= int(lengths[0].split(b":")[1]))


POST = "POST /api/sql HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"


def test_a_body_that_is_not_json(server: HttpServer) -> None:
    status, error = say(server, POST + "Content-Length: 8", b"nonsense")
    assert (status, error["code"]) == (400, "NotJson")


def test_a_body_that_says_it_is_too_large_is_refused_unread(server: HttpServer) -> None:
    status, error = say(server, POST + f"Content-Length: {MOST_BODY_BYTES + 1}")
    assert (status, error["code"]) == (413, "BodyTooLarge")


def test_a_body_that_never_comes_is_given_up(server: HttpServer) -> None:
    status, error = say(server, POST + "Content-Length: 100", b'{"sql"')
    assert (status, error["code"]) == (408, "SlowBody")


def test_one_slow_body_keeps_nobody_waiting(loaded: Rig) -> None:
    with (
        HttpServer(loaded.app()).start() as server,
        closing(socket.create_connection(("127.0.0.1", server.port))) as slow,
    ):
        slow.sendall((POST + "Content-Length: 100").replace("\n", "\r\n").encode() + b"\r\n\r\n{")
        answer = httpx.get(f"http://127.0.0.1:{server.port}/api/jobs", timeout=10)
        assert [job["name"] for job in answer.json()["jobs"]] == ["orders"]


def test_many_ask_at_once(server: HttpServer) -> None:
    found: list[int] = []

    def ask() -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as client:
            found.extend(client.get(path).status_code for path in ("/api/jobs/orders", "/metrics", "/readyz"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 24


def test_a_download_comes_whole(server: HttpServer) -> None:
    with httpx.stream("GET", f"http://127.0.0.1:{server.port}/api/jobs/orders/quarantine") as answer:
        assert [json.loads(line)["seq"] for line in answer.iter_lines()] == [3, 2]


def test_a_port_that_is_taken_is_said(server: HttpServer, loaded: Rig) -> None:
    with pytest.raises(ConfigError, match="cannot listen"):
        HttpServer(loaded.app()).start(port=server.port)


def test_after_closing_the_port_is_free_and_it_may_be_closed_again(loaded: Rig) -> None:
    server = HttpServer(loaded.app()).start()
    port = server.port
    server.close()
    server.close()
    with pytest.raises(ConfigError, match="not started"):
        _ = server.port
    with HttpServer(loaded.app()).start(port=port) as again:
        assert httpx.get(f"http://127.0.0.1:{again.port}/healthz").status_code == 200


def test_tls(loaded: Rig, tmp_path: Path) -> None:
    signed = self_signed(tmp_path)
    trust = ssl.create_default_context(cafile=str(signed.certificate))
    with HttpServer(loaded.app()).start(tls=CertificateFiles(signed.certificate, signed.key)) as server:
        answer = httpx.get(f"https://127.0.0.1:{server.port}/healthz", verify=trust)
        assert answer.json()["status"] == "ok"


@pytest.mark.parametrize("content", [None, "not a certificate"])
def test_a_certificate_that_is_none_is_said(loaded: Rig, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "c.pem"
    if content:
        path.write_text(content)
    with pytest.raises(ConfigError, match="certificate"):
        HttpServer(loaded.app()).start(tls=CertificateFiles(path, path))
