"""A receiver of notices: a real HTTP server that remembers what it was told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class HookServer:
    """What came, and what is answered."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        """Path, headers in small letters, body."""
        self.status = 200
        self.headers: dict[str, str] = {}
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/done"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, _, body in self.requests]

    @property
    def keys(self) -> list[str]:
        return [headers["idempotency-key"] for _, headers, _ in self.requests]


@contextmanager
def hook_server() -> Iterator[HookServer]:
    """One that listens at a port of its own."""
    hooks = HookServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            hooks.requests.append((self.path, headers, json.loads(body)))
            self.send_response(hooks.status)
            for name, value in {**hooks.headers, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hooks.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield hooks
        finally:
            server.shutdown()
            thread.join()
