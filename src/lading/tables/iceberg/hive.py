"""A Hive metastore: a commit holds its lock, and names the state that it replaces.

PyIceberg takes the lock of the table and alters it without saying what it was. A lock that nobody renews ends after
some minutes; a process that slept in between would write over what others committed. So the change names the metadata
file that it replaces, which metastores since 2.3.10, 3.1.4 and 4.0 compare in their own database (HIVE-26882); older
ones do not look at it, and for those a change that comes late is not sent at all.
"""

from __future__ import annotations

from typing import Any

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import EnvironmentContext
from pyiceberg.catalog.hive import HiveCatalog, _HiveClient
from pyiceberg.exceptions import CommitFailedException
from thrift.protocol import TBinaryProtocol

from lading.clock import SystemClock

_LOCK_HOLDS_S = 60.0
"""Metastores keep a lock for five minutes; this leaves room for clocks and for the change itself."""
_TIMEOUT_MS = 60_000


class LockedHive(HiveCatalog):
    """HiveCatalog whose clients are those of this module."""

    @staticmethod
    def _create_hive_client(properties: dict[str, str]) -> _HiveClient:
        return _Connection(properties["uri"].split(",")[0], properties.get("ugi"))


class _Connection(_HiveClient):
    def _init_thrift_transport(self) -> Any:
        transport = super()._init_thrift_transport()
        # Thrift's socket is within the transport, and waits for ever unless it is told.
        transport._TBufferedTransport__trans.setTimeout(_TIMEOUT_MS)  # noqa: SLF001
        return transport

    def _client(self) -> Client:
        client = _CarefulClient(TBinaryProtocol.TBinaryProtocol(self._transport))
        if self._ugi:
            client.set_ugi(*self._ugi)
        return client


class _CarefulClient(Client):  # type: ignore[misc]
    """Thrift's client; remembers when it asked for the lock."""

    _asked_at_s = 0.0

    def lock(self, rqst: Any) -> Any:
        self._asked_at_s = SystemClock().monotonic_s()
        return super().lock(rqst)

    def alter_table_with_environment_context(self, **asked: Any) -> Any:
        context: EnvironmentContext = asked["environment_context"]
        before = (asked["new_tbl"].parameters or {}).get("previous_metadata_location")
        if before:
            expected = {"expected_parameter_key": "metadata_location", "expected_parameter_value": before}
            asked["environment_context"] = EnvironmentContext(properties={**(context.properties or {}), **expected})
        if SystemClock().monotonic_s() - self._asked_at_s > _LOCK_HOLDS_S:
            msg = "The lock of the metastore may have ended: nothing was sent"
            raise CommitFailedException(msg)
        return super().alter_table_with_environment_context(**asked)
