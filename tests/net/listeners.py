"""An endpoint in front of a store, which can begin to redirect; and a listener that must not be reached."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_OURS = {"expect", "transfer-encoding"}
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


class Listener(ThreadingHTTPServer):
    """Hears requests. Without a store behind it, it answers like a place where nobody should be."""

    daemon_threads = True

    def __init__(self, store: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.store = store.removeprefix("http://")
        self.status, self.location = 0, ""
        """With a status, every request is redirected to the location."""
        self.heard: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def redirect(self, status: int, location: str) -> None:
        self.status, self.location = status, location
        self.heard.clear()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Listener

    def answer(self) -> None:
        body = self._body()
        self.server.heard.append(f"{self.command} {self.path}")
        if self.server.status:
            # Where the request wanted to go does not matter to who sends it elsewhere.
            self._send(self.server.status, {"Location": f"{self.server.location}{self.path}"}, b"")
        elif self.server.store:
            self._forward(body)
        else:
            self._send(200, {"ETag": '"x"', "Content-Type": "text/plain"}, b"role-credentials")

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _forward(self, body: bytes) -> None:
        connection = http.client.HTTPConnection(self.server.store)
        given: dict[str, Any] = {name: value for name, value in self.headers.items() if name.lower() not in _OURS}
        connection.request(self.command, self.path, body=body, headers=given)
        answer = connection.getresponse()
        content, length = answer.read(), answer.headers.get("content-length")
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP}
        self._send(answer.status, headers, content, length=length if self.command == "HEAD" else None)
        connection.close()

    def _send(self, status: int, headers: dict[str, str], body: bytes, length: str | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def listening(store: str = "") -> Iterator[Listener]:
    """Listen until the block ends."""
    with Listener(store) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()
