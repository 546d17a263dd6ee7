"""The app on a socket, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self, cast

import uvicorn
from starlette.types import ASGIApp

from lading.errors import ConfigError
from lading.http.connections import ConnectionLimits, PatientProtocol, protocol_with
from lading.http.tls import TlsDoor
from lading.service.security.certificates import CertificateFiles

STARTED_WITHIN_S = 30.0
CLOSED_WITHIN_S = 30.0


class HttpServer:
    """Start it once; `port` is known as soon as `start` returns, also when 0 was asked for."""

    def __init__(
        self, app: ASGIApp, *, limits: ConnectionLimits | None = None, trusted_proxies: Sequence[str] = ()
    ) -> None:
        self._app = app
        self._limits = limits or ConnectionLimits()
        self._trusted_proxies = list(trusted_proxies)
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self._socket: socket.socket | None = None

    def start(
        self, host: str = "127.0.0.1", port: int = 0, *, tls: CertificateFiles | None = None, drain_s: int = 5
    ) -> Self:
        """Listen, and return when requests are answered. Raises ConfigError when the address cannot be had."""
        bound = _listen(host, port)
        server = _Server(self._config(drain_s), self._limits, tls)
        thread = threading.Thread(target=server.run, args=([bound],), name="lading-http", daemon=True)
        thread.start()
        self._server, self._thread, self._socket = server, thread, bound
        if not server.is_up.wait(STARTED_WITHIN_S) or server.should_exit:
            self.close()
            msg = f"HTTP did not start on {host}:{port}"
            raise ConfigError(msg, left="Nothing was started.", todo="The log says why.")
        return self

    @property
    def port(self) -> int:
        """Where it listens."""
        if self._socket is None:
            msg = "HTTP was not started"
            raise ConfigError(msg, left="Nobody is served.", todo="Call start first.")
        port: int = self._socket.getsockname()[1]
        return port

    def close(self) -> None:
        """Take no new requests, finish those that run, let go of the port."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(CLOSED_WITHIN_S)
        if self._socket is not None:
            self._socket.close()
        self._server = self._thread = self._socket = None

    def _config(self, drain_s: int) -> uvicorn.Config:
        config = uvicorn.Config(
            self._app,
            log_config=None,
            access_log=False,
            server_header=False,
            # What headers say about the client is believed of proxies that were named, and of nobody else.
            proxy_headers=bool(self._trusted_proxies),
            forwarded_allow_ips=self._trusted_proxies,
            timeout_graceful_shutdown=drain_s,
            http=protocol_with(self._limits),
            h11_max_incomplete_event_size=self._limits.head_bytes,
            ws="websockets-sansio",
        )
        config.load()
        return config

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class _Server(uvicorn.Server):
    """Says when it is up, and accepts by itself where there is TLS."""

    def __init__(self, config: uvicorn.Config, limits: ConnectionLimits, tls: CertificateFiles | None) -> None:
        super().__init__(config)
        self.is_up = threading.Event()
        self._limits = limits
        self._tls = tls
        self._doors: list[TlsDoor] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup([] if self._tls else sockets)
            if self._tls and self.started:
                most = self._limits.most_connections
                self._doors = [TlsDoor(each, self._tls, self._protocol, most=most) for each in sockets or []]
            for door in self._doors:
                door.open(self._limits.head_timeout_s, self.config.backlog)
        finally:
            self.is_up.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for door in self._doors:
            await door.close()
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        make = cast("type[PatientProtocol]", self.config.http_protocol_class)
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        msg = f"HTTP cannot listen on {host}:{port}: {error.strerror}"
        raise ConfigError(msg, left="Nothing was started.", todo="Choose another address or port.") from error
    return bound
