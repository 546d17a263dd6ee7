"""Clients of AWS look whom they are connected to before they say anything.

A name is resolved when a statement is checked and again when a client connects, and it may lead elsewhere by then. So
the address of the socket itself is checked, after the connection is made and before a byte is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.errors import ConfigError
from lading.net.addresses import AddressRules


def guard_peers(client: Any, rules: AddressRules) -> Any:
    """The same client of boto3, which from now on connects only to where the rules allow it."""
    # botocore has no public way to choose the connections of a client.
    http = client._endpoint.http_session  # noqa: SLF001
    guarded = guarded_pools(http._pool_classes_by_scheme, rules)  # noqa: SLF001
    http._pool_classes_by_scheme = guarded  # noqa: SLF001
    http._manager.pool_classes_by_scheme = guarded  # noqa: SLF001
    return client


def guarded_pools(pools: Mapping[str, Any], rules: AddressRules) -> dict[str, Any]:
    """The pools of urllib3, by scheme, whose connections look whom they reach."""
    return {scheme: _pool(pool, rules) for scheme, pool in pools.items()}


def _pool(base: Any, rules: AddressRules) -> Any:
    class GuardedConnection(base.ConnectionCls):  # type: ignore[misc]
        def _new_conn(self) -> Any:
            sock = super()._new_conn()
            if getattr(self, "proxy", None) is None:  # A proxy of the machine decides by itself where to connect.
                peer = sock.getpeername()[0]
                if rules.refusal(self.host, [peer]) is not None:
                    sock.close()
                    msg = f"{self.host} leads to an address that this statement must not reach"
                    todo = "Name another endpoint, or see LADING_ALLOW_PRIVATE_ENDPOINTS."
                    raise ConfigError(msg, left="Nothing was sent.", todo=todo)
            return sock

    class GuardedPool(base):  # type: ignore[misc]
        ConnectionCls = GuardedConnection

    return GuardedPool
