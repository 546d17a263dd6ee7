"""Files that may still be written: on a disk a file is there before it is whole."""

from __future__ import annotations

from lading.clock import Clock
from lading.storage.store import ObjectInfo

_MOST_WATCHED = 10_000


class Settling:
    """Tells how long files are to be left alone. A file has settled when it was not modified for `settle_s` seconds."""

    def __init__(self, settle_s: float, clock: Clock) -> None:
        self._settle_s = settle_s
        self._clock = clock
        self._ahead: dict[str, tuple[str, float]] = {}
        """Files that were modified in the future, as their server has it: what they were, and since when."""

    def remaining_s(self, file: ObjectInfo) -> float:
        """Seconds until the file has settled, if nobody modifies it; 0 when it has."""
        if self._settle_s <= 0:
            return 0.0
        age_s = (self._clock.now() - file.modified).total_seconds()
        if age_s < 0:
            # The clock of a file server may be ahead for good: what counts is how long the file has been the same here.
            age_s = self._watched_s(file)
        return max(0.0, self._settle_s - age_s)

    def _watched_s(self, file: ObjectInfo) -> float:
        now_s = self._clock.monotonic_s()
        etag, since_s = self._ahead.get(file.key, ("", now_s))
        if etag != file.etag:
            if len(self._ahead) >= _MOST_WATCHED:
                self._ahead.clear()
            self._ahead[file.key] = (file.etag, now_s)
            return 0.0
        return now_s - since_s
