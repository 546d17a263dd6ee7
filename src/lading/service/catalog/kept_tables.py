"""Tables that views look at again and again: to open one costs in proportion to its files, another look does not."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from lading.deferred import deferred
from lading.model.names import is_external

if TYPE_CHECKING:
    from lading.service.catalog.tables import TableCatalog
    from lading.tables.base import LakeTable
    from lading.tables.kind import TablePlace
    from lading.tables.registry import kind_of
else:
    kind_of = deferred("lading.tables.registry", "kind_of")

MOST = 16
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Kept:
    opened_as: tuple[str, TablePlace]
    table: LakeTable
    lock: threading.Lock = field(default_factory=threading.Lock, compare=False)
    """A handle is not shared between threads."""


class KeptTables:
    """Handles of the tables that were asked for last. Safe to use from many threads."""

    def __init__(self, catalog: TableCatalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()

    def ask(self, database: str, name: str, question: Callable[[LakeTable], _T]) -> _T:
        """What a table says now. One that could not answer is opened again the next time."""
        if is_external(database):
            return question(self._catalog.open_table(database, name))
        kept = self._handle(database, name)
        try:
            with kept.lock:
                return question(kept.table)
        except BaseException:
            with self._lock:
                self._kept.pop((database, name), None)
            raise

    def _handle(self, database: str, name: str) -> _Kept:
        entry = self._catalog.entry(database, name)
        place = self._catalog.table_place(database, name, entry.location, is_adopted=entry.is_adopted)
        opened_as = (entry.format, place)
        with self._lock:
            known = self._kept.get((database, name))
            if known is not None and known.opened_as == opened_as:
                self._kept.move_to_end((database, name))
                return known
        made = _Kept(opened_as, kind_of(entry.format).open(place))
        with self._lock:
            self._kept[database, name] = made
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return made
