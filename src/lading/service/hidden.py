"""Texts that others wrote, without the secrets of this service.

An error of a library may repeat what it was given, in words that nobody foresaw. So every secret that the service
holds is known here by its value, and what goes to logs, records and clients is searched for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from lading.sql.spans import MASK, is_reference, mask_text

SHORTEST = 6
"""Shorter values also stand in harmless words. Written as `name = value` they are masked all the same."""
MOST = 20_000
"""Values that are remembered: those that were used last."""


class Hidden:
    """Values that are not shown. Used by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, None] = {}

    def learn(self, values: Iterable[str]) -> None:
        """From now on these are not shown."""
        found = [value for value in values if len(value) >= SHORTEST and value != MASK and not is_reference(value)]
        with self._lock:
            for value in found:
                self._values.pop(value, None)
                self._values[value] = None
            while len(self._values) > MOST:
                del self._values[next(iter(self._values))]

    def hide(self, text: str) -> str:
        """The text with `******` for every secret that is known by its value or by the name that stands before it."""
        with self._lock:
            found = [value for value in self._values if value in text]
        for value in sorted(found, key=len, reverse=True):  # One may be the beginning of another.
            text = text.replace(value, MASK)
        return mask_text(text)


HIDDEN = Hidden()
"""One for the process, as its logs are: whoever opens a secret tells it."""
hide = HIDDEN.hide
