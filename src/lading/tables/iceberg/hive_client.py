"""Talking to a Hive metastore: whom it is asked through, for how long, and what its answers may be.

PyIceberg's client shares one connection among threads, waits for ever, connects to wherever a name leads, and asks with
`get_table`, which metastores since 4.0 do not know.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    AlreadyExistsException,
    GetTableRequest,
    GetTablesRequest,
    InvalidOperationException,
    NoSuchObjectException,
)
from pyiceberg.catalog.hive import _HiveClient
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from lading.errors import ConfigError
from lading.net.addresses import AddressRules
from lading.tables.iceberg.errors import CatalogAnswerError

_CONNECT_MS = 10_000
_ANSWER_MS = 60_000
_PORT = 9083
_LONGEST_TEXT = 64 * 1024 * 1024
_LONGEST_LIST = 1_000_000
_OF_PYICEBERG = (AlreadyExistsException, InvalidOperationException, NoSuchObjectException)
"""It tells these itself."""


class MetastoreClient(Client):  # type: ignore[misc]
    """Thrift's client with the questions that old and new metastores know: 2.3 and later."""

    def get_table(self, dbname: str, tbl_name: str) -> Any:
        return self.get_table_req(GetTableRequest(dbName=dbname, tblName=tbl_name)).table

    def get_table_objects_by_name(self, dbname: str, tbl_names: Sequence[str]) -> Any:
        if not tbl_names:
            return []
        return self.get_table_objects_by_name_req(GetTablesRequest(dbName=dbname, tblNames=list(tbl_names))).tables


class Connections(_HiveClient):
    """A connection for each `with`, of whichever thread, to the first metastore of a list that takes one."""

    def __init__(self, uris: Sequence[str], rules: AddressRules) -> None:
        # Not PyIceberg's: that would make its one transport.
        self._uris = tuple(uris)
        self._rules = rules
        self._open = threading.local()
        # Thrift writes every failure to connect into the log with its trace, and raises it, too.
        logging.getLogger(TSocket.__module__).setLevel(logging.CRITICAL)

    def __enter__(self) -> MetastoreClient:
        problem: Exception | None = None
        for uri in self._uris:
            try:
                transport = self._connect(uri)
            except (TException, OSError) as error:
                problem = error
                continue
            self._stack().append(transport)
            protocol = TBinaryProtocol(
                transport, string_length_limit=_LONGEST_TEXT, container_length_limit=_LONGEST_LIST
            )
            return MetastoreClient(protocol)
        raise CatalogAnswerError(str(problem)) from problem

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._stack().pop().close()
        if isinstance(error, _OF_PYICEBERG):
            return
        if isinstance(error, (TException, EOFError, OSError)) and not isinstance(error, FileNotFoundError):
            raise CatalogAnswerError(_told(error)) from error

    def _connect(self, uri: str) -> TBufferedTransport:
        place = urlsplit(uri.strip())
        transport = TBufferedTransport(_GuardedSocket(place.hostname or "", place.port or _PORT, self._rules))
        transport.open()
        return transport

    def _stack(self) -> list[TBufferedTransport]:
        if not hasattr(self._open, "transports"):
            self._open.transports = []
        found: list[TBufferedTransport] = self._open.transports
        return found


class _GuardedSocket(TSocket):  # type: ignore[misc]
    """Looks whom it is connected to before a byte is sent."""

    def __init__(self, host: str, port: int, rules: AddressRules) -> None:
        super().__init__(host, port)
        self._rules = rules

    def open(self) -> None:
        self.setTimeout(_CONNECT_MS)
        super().open()
        if self._rules.refusal(self.host, [self.handle.getpeername()[0]]) is not None:
            self.close()
            msg = f"{self.host} leads to an address that this statement must not reach"
            todo = "Name another metastore, or see LADING_ALLOW_PRIVATE_ENDPOINTS."
            raise ConfigError(msg, left="Nothing was sent.", todo=todo)
        self.setTimeout(_ANSWER_MS)


def _told(error: BaseException) -> str:
    return getattr(error, "message", None) or str(error) or type(error).__name__
