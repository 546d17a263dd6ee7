"""Metrics of tables: their files, and what compaction did to them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from lading.tables.compaction.figures import TableFigures
from lading.tables.compaction.model import Compacted
from lading.tables.compaction.run import COMPACTED

MOST_TABLES = 1000
_OTHER = "other"
_LABELS = ("table",)


class TableMetrics:
    """Counted by the service that looks after a table. The number of tables with a name of their own is bounded."""

    def __init__(self, registry: CollectorRegistry, most_tables: int = MOST_TABLES) -> None:
        self._most = most_tables
        self._names: set[str] = set()

        def gauge(name: str, what: str) -> Gauge:
            return Gauge(f"lading_table_{name}", what, _LABELS, registry=registry)

        def counter(name: str, what: str, *more: str) -> Counter:
            return Counter(f"lading_{name}", what, (*_LABELS, *more), registry=registry)

        self._files = gauge("files", "Data files of a table.")
        self._small = gauge("small_files", "Data files of a table that are small.")
        self._due = gauge("due_files", "Small files that the next round of compaction would put together.")
        self._bytes = gauge("bytes", "Bytes of the data files of a table.")
        self._partitions = gauge("partitions", "Partitions of a table that have files.")
        self._most_files = gauge("partition_files_max", "Data files of the partition that has the most of them.")
        self._runs = counter("compactions", "Compactions, by their end: compacted, given_up or unknown.", "outcome")
        self._replaced = counter("compacted_files", "Small files that compaction put together.")
        self._read = counter("compacted_bytes", "Bytes of the small files that compaction put together.")

    def seen(self, found: TableFigures) -> None:
        """How the files of a table stand."""
        name = self._name(found.table)
        if name == _OTHER:
            return
        for metric, value in (
            (self._files, found.files),
            (self._small, found.small),
            (self._due, found.due),
            (self._bytes, found.size_bytes),
            (self._partitions, len(found.partitions)),
            (self._most_files, found.most_files),
        ):
            metric.labels(name).set(value)

    def compacted(self, table: str, done: Compacted) -> None:
        """One compaction ended."""
        name = self._name(table)
        self._runs.labels(name, done.outcome.replace(" ", "_")).inc()
        if done.outcome == COMPACTED:
            self._replaced.labels(name).inc(done.files)
            self._read.labels(name).inc(done.bytes_before)

    def forget_all_but(self, tables: set[str]) -> None:
        """Tables that were dropped are told of no more."""
        for name in self._names - tables:
            for metric in (self._files, self._small, self._due, self._bytes, self._partitions, self._most_files):
                metric.remove_by_labels({"table": name})
            for counted in (self._runs, self._replaced, self._read):
                counted.remove_by_labels({"table": name})
        self._names &= tables

    def _name(self, table: str) -> str:
        if table not in self._names and len(self._names) >= self._most:
            return _OTHER
        self._names.add(table)
        return table
