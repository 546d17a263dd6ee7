"""How long a connection to PostgreSQL is believed in when its other end is gone.

A server that is replaced, or a network that drops packets, says no goodbye. Without limits of the client's own a
statement waits for its answer for a quarter of an hour, and one that had been sent for two hours: the server's
`statement_timeout` is not there to end it.
"""

from __future__ import annotations

from collections.abc import Container

_LIMITS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}


def connection_limits(given: Container[str]) -> dict[str, str]:
    """Parameters of libpq, but for those that a URL has of its own."""
    return {name: value for name, value in _LIMITS.items() if name not in given}
