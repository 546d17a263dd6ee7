"""Commands that talk to the service of their home."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lading.cli.remote import RemoteLading
from lading.service.runtime.address_file import ServiceAddress
from lading.testing.marked import secret


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """A place that answers everything with no jobs, and what tokens it was sent."""
    tokens: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers["Authorization"])
            body = json.dumps({"jobs": [], "next_after": None}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", tokens
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_token_is_not_sent_to_a_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    token = secret("token-of-the-service")
    with listening() as (service, seen), listening() as (proxy, leaked):
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        address = ServiceAddress(pid=1, http=service, mysql_port=0, token=token)
        assert RemoteLading(address).jobs() == []
    assert (seen, leaked) == ([f"Bearer {token}"], [])
