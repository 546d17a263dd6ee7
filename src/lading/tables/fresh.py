"""The place of a table for other processes, also where its keys end."""

from __future__ import annotations

from functools import partial

from lading.storage.renewed import RenewedStore
from lading.storage.store import ObjectStore, open_store
from lading.tables.base import WriterSpec


def open_table_store(spec: WriterSpec) -> ObjectStore:
    """The place of a table. A catalog that lends keys is asked for others when they end, in whatever process."""
    if spec.keys is None:
        return open_store(spec.location, spec.options)
    return RenewedStore(partial(open_store, spec.location), spec.keys)
