"""How long a connection to PostgreSQL is believed in when its other end is gone, or says nothing.

A server that is replaced, or a network that drops packets, says no goodbye. Without limits of the client's own a
statement waits for its answer for a quarter of an hour, and one that had been sent for two hours: the server's
`statement_timeout` is not there to end it. One that hangs on a machine that goes on taking bytes (a disk that stands
still, a pool that was paused, a process that was stopped) is waited for without any end, also by TCP.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from sqlalchemy import URL, CreateEnginePlugin, Engine, event
from sqlalchemy.dialects import plugins

_LIMITS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
SILENCE_PLUGIN = "lading.silence"
"""In a URL: an engine that is made of it is one whose connections `end_silence` ends."""
_SILENCE_S = 40.0
"""Longer than a server works at a statement of ours before it ends it by itself."""


def connection_limits(given: Container[str]) -> dict[str, str]:
    """Parameters of libpq, but for those that a URL has of its own."""
    return {name: value for name, value in _LIMITS.items() if name not in given}


def end_silence(engine: Engine, limit_s: float = _SILENCE_S) -> Engine:
    """Every new connection of this engine ends when nothing comes for so long while it waits for an answer."""

    def connect(_dialect: Any, _record: Any, words: Any, options: Any) -> Any:
        from lading.net.heard_postgres import HeardConnection

        made = HeardConnection.connect(*words, **options)
        made.limit_s = limit_s
        return made

    event.listen(engine, "do_connect", connect)
    return engine


class SilencePlugin(CreateEnginePlugin):
    """For engines that libraries make."""

    def update_url(self, url: URL) -> URL:
        return url

    def engine_created(self, engine: Engine) -> None:
        end_silence(engine)


plugins.register(SILENCE_PLUGIN, __name__, SilencePlugin.__name__)
