"""The keys that a catalog lends for the files of one table, here and in Spark's executors.

What is pickled for a batch has keys that are good at that moment, and how the catalog is asked for others: a batch may
take longer than its keys. It is sealed, as the keys themselves are (`pipeline/sealing.py`).
"""

from __future__ import annotations

import threading
from typing import Any

from pyiceberg.exceptions import RESTError
from requests.exceptions import RequestException

from lading.clock import SystemClock
from lading.model.catalog import CatalogAccess
from lading.model.s3_access import S3Access
from lading.tables.iceberg.errors import translated
from lading.tables.iceberg.rest import GuardedRest, LentAccess


class TableKeys:
    """Implements KeySource."""

    def __init__(self, catalog: GuardedRest, identifier: str) -> None:
        self._catalog: GuardedRest | None = catalog
        self._identifier = identifier
        self._sent: LentAccess | None = None
        self._access: CatalogAccess = catalog.definition
        self._lock = threading.Lock()

    def __call__(self) -> S3Access:
        with self._lock, translated(self._what):
            return self._good()

    def renew(self, refused: S3Access) -> S3Access:
        with self._lock, translated(self._what):
            good = self._good()
            if good == refused:
                opened = self._opened()
                opened.load_table(self._identifier)
                good = opened.lent
            return good

    @property
    def _what(self) -> str:
        return f"table {self._access.name}.{self._identifier}"

    def _good(self) -> S3Access:
        if self._catalog is not None:
            return self._catalog.fresh()
        now_s, sent = SystemClock().now().timestamp(), self._sent
        if sent is not None and now_s < sent.until_s:
            return sent.access
        try:
            return self._opened().fresh()
        except (RESTError, RequestException):
            if sent is None or now_s >= sent.over_s:
                raise
            # The catalog is away for a moment, or not to be reached from here: the keys are good until their end.
            return sent.access

    def _opened(self) -> GuardedRest:
        if self._catalog is None:
            opened = GuardedRest(self._access)
            opened.load_table(self._identifier)
            self._catalog = opened
        return self._catalog

    def __getstate__(self) -> dict[str, Any]:
        with self._lock, translated(self._what):
            self._good()
            sent = self._catalog.lent_until() if self._catalog is not None else self._sent
        return {"_access": self._access, "_identifier": self._identifier, "_sent": sent}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _catalog=None, _lock=threading.Lock())
