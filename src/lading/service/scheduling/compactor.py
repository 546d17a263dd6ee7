"""Compacts small files of all tables now and then, while a service runs.

One thread, one table after the other, within a budget of bytes for each round: loads have the rest of the machine. When
it is spent, the other tables are only looked at, and the next round begins with the first of them. Of
several services that share a store one looks after a table: the one that runs the first of its jobs. Were there two all
the same, the second one to commit would give up, because the files that it chose are not in the table any more.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Protocol

from lading.errors import LadingError
from lading.service.installation import Installation
from lading.service.views.compaction import AUTO, figures_of, loaded_tables, mode_of, name_of, policy_of
from lading.store.records import TableEntry
from lading.tables.compaction.choose import choose_groups
from lading.tables.compaction.figures import TableFigures
from lading.tables.compaction.model import Compacted, CompactionPolicy
from lading.tables.compaction.run import COMPACTED, compact_table

FIRST_S = 30.0


class CompactionWatch(Protocol):
    """Who is told."""

    def table_seen(self, found: TableFigures) -> None: ...

    def table_compacted(self, table: str, done: Compacted) -> None: ...

    def tables_there(self, tables: set[str]) -> None: ...


class CompactionRounds:
    """One thread of a service."""

    def __init__(
        self, lading: Installation, watch: CompactionWatch, *, first_s: float = FIRST_S, every_s: float | None = None
    ) -> None:
        self._lading = lading
        self._watch = watch
        self._every_s = float(lading.settings.compaction.compaction_seconds) if every_s is None else every_s
        self._first_s = min(first_s, self._every_s)
        self._first = ""
        """The table that the next round begins with; empty: the first by name."""
        self._ending = threading.Event()
        self._log = logging.getLogger("lading.compaction")
        self._thread = threading.Thread(target=self._run, name="lading-compaction", daemon=True)

    def start(self) -> None:
        if self._every_s > 0:
            self._thread.start()

    def close(self) -> None:
        """End after the files that are being put together."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """One round over all tables."""
        policy = policy_of(self._lading.settings.compaction)
        left = policy.budget_bytes
        entries = self._in_turn([entry for entry in loaded_tables(self._lading) if self._is_ours(entry)])
        self._watch.tables_there({name_of(entry) for entry in entries})
        for entry in entries:
            if self._ending.is_set():
                return
            if left <= 0 and not self._first:
                self._first = name_of(entry)
            try:
                left -= self._table(entry, replace(policy, budget_bytes=left))
            except LadingError as error:
                self._log.warning("the files of %s were not looked at: %s", name_of(entry), error)

    def _in_turn(self, entries: list[TableEntry]) -> list[TableEntry]:
        """Those first that the budget of the last round was not enough for."""
        first, self._first = self._first, ""
        return sorted(entries, key=lambda entry: (name_of(entry) < first, name_of(entry)))

    def _table(self, entry: TableEntry, policy: CompactionPolicy) -> int:
        """How many bytes were read."""
        name = name_of(entry)
        table = self._lading.catalog.open_table(entry.database, entry.name)
        live = table.live_files()
        spent = 0
        if policy.budget_bytes > 0 and mode_of(self._lading, entry) == AUTO and not live.why_not:
            groups = choose_groups(live.files, policy, self._lading.clock.now())
            for done in compact_table(table, groups, policy, self._lading.clock, lambda: not self._ending.is_set()):
                spent += done.bytes_before
                self._watch.table_compacted(name, done)
                self._tell(name, done)
            live = table.live_files() if groups else live
        self._watch.table_seen(figures_of(self._lading, entry, table, live))
        return spent

    def _tell(self, name: str, done: Compacted) -> None:
        where = f"{name}, partition {done.partition}" if done.partition else name
        if done.outcome == COMPACTED:
            self._log.info("%d files of %s were put together into %d", done.files, where, done.files_after)
        else:
            self._log.info("compaction of %s: %s: %s", where, done.outcome, done.remark)

    def _is_ours(self, entry: TableEntry) -> bool:
        lading = self._lading
        if not lading.leases.has_others:
            return True
        target = name_of(entry)
        jobs = sorted(stored.record.job_id for stored in lading.store.list_jobs() if stored.record.target == target)
        if jobs:
            return lading.leases.holds(jobs[0])
        return lading.leases.service_id == min(each.service_id for each in lading.store.list_services())

    def _run(self) -> None:
        wait_s = self._first_s
        while not self._ending.wait(wait_s):
            wait_s = self._every_s
            try:
                self.look()
            except LadingError as error:
                self._log.warning("small files were not looked for: %s", error)
            except Exception:  # noqa: BLE001 - the door of a thread: the rounds go on
                self._log.exception("small files were not looked for")
