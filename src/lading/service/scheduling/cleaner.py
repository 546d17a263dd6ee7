"""Removes orphans of all tables now and then, while a service runs."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from lading.errors import LadingError
from lading.service.installation import Installation
from lading.service.statements.clean import SAFE_AGE, clean_table

FIRST_S = 600.0
"""A service that has just started has better things to do."""
EVERY_S = 24 * 3600.0


class CleaningRounds:
    """One thread of a service."""

    def __init__(self, lading: Installation, *, first_s: float = FIRST_S, every_s: float = EVERY_S) -> None:
        self._lading = lading
        self._first_s = first_s
        self._every_s = every_s
        self._ending = threading.Event()
        self._log = logging.getLogger("lading.clean")
        self._thread = threading.Thread(target=self._run, name="lading-cleaning-rounds", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End after the table that is being looked at."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """One round over all tables."""
        for entry in self._lading.store.list_tables():
            if self._ending.is_set():
                return
            cleaned = clean_table(self._lading, entry, age=SAFE_AGE, dry_run=False)
            if cleaned.found:
                counts = Counter(orphan.what for orphan in cleaned.found)
                told = ", ".join(f"{count} x {what}" for what, count in sorted(counts.items()))
                self._log.info("orphans of %s were removed: %s", cleaned.table, told)
            if cleaned.remark:
                self._log.info("orphans of %s were not looked for: %s", cleaned.table, cleaned.remark)

    def _run(self) -> None:
        wait_s = self._first_s
        while not self._ending.wait(wait_s):
            wait_s = self._every_s
            try:
                self.look()
            except LadingError as error:
                self._log.warning("orphans were not removed: %s", error)
            except Exception:  # noqa: BLE001 - the door of a thread: the rounds go on
                self._log.exception("orphans were not removed")
