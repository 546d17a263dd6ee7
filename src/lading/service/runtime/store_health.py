"""Whether the metadata store can be written, found out by writing.

A store on a full disk answers every question and keeps nothing. So a small value is written, as much as a batch
writes, at most every few seconds however often somebody asks. A store that hangs is found to be away after a time
limit; nobody waits for it twice.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass

from lading.clock import Clock
from lading.errors import LadingError
from lading.store.protocols import MetadataStore

HEARTBEAT = "heartbeat"
_SIZE = 16 * 1024
"""Letters. A page that is there already could be written on a full disk, too."""
_OK = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """What the last write showed."""

    said: str = _OK
    is_hanging: bool = False

    @property
    def is_ok(self) -> bool:
        return self.said == _OK


def try_write(store: MetadataStore) -> None:
    """Write a value that nobody reads. Raises StoreError when the store does not take it."""
    store.write_setting(HEARTBEAT, secrets.token_hex(_SIZE // 2))


class StoreHealth:
    """For one store. Safe to use from many threads."""

    def __init__(self, store: MetadataStore, clock: Clock, *, every_s: float = 5.0, within_s: float = 3.0) -> None:
        self._store = store
        self._clock = clock
        self._every_s = every_s
        self._within_s = within_s
        self._lock = threading.Lock()
        self._state = StoreState()
        self._begun_s = float("-inf")
        self._running: threading.Event | None = None

    def check(self) -> StoreState:
        """Whether the store can be written now, or could a few seconds ago."""
        with self._lock:
            now = self._clock.monotonic_s()
            if self._running is None and now - self._begun_s >= self._every_s:
                self._begun_s, self._running = now, threading.Event()
                # A thread of its own each time: one that hangs must not keep the next from being seen.
                threading.Thread(target=self._write, args=(self._running,), name="lading-health", daemon=True).start()
            running, rest_s = self._running, self._within_s - (now - self._begun_s)
        if running is not None and not running.wait(max(0.0, rest_s)):
            return StoreState(said=f"a write was not answered within {self._within_s:g} seconds", is_hanging=True)
        with self._lock:
            return self._state

    def _write(self, done: threading.Event) -> None:
        try:
            try_write(self._store)
            state = StoreState()
        except LadingError as error:
            state = StoreState(said=error.what)
        except Exception as error:  # noqa: BLE001 - told as the state of the store
            state = StoreState(said=f"{type(error).__name__}: {error}")
        with self._lock:
            self._state, self._running = state, None
        done.set()
