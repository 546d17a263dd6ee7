"""Texts that others wrote, without the secrets of this service.

An error of a library may repeat what it was given, in words that nobody foresaw. So every secret that the service
holds is known here by its value, and what goes to logs, records and clients is searched for it.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from urllib.parse import quote, quote_plus

from lading.sql.syntax.spans import MASK, is_reference, mask_text

SHORTEST = 6
"""Shorter values also stand in harmless words. Written as `name = value` they are masked all the same."""
_FRAME = "-----"
"""Begins the first and the last line of a key in PEM form, which are the same in all keys."""
MOST = 20_000
"""Values that are remembered: those that were used last."""


class Redactor:
    """Values that are not shown. Used by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, None] = {}
        self._heads: Counter[str] = Counter()
        """How the values begin, and how many begin so."""

    def learn(self, values: Iterable[str]) -> None:
        """From now on these are not shown."""
        found = [form for value in values if value != MASK and not is_reference(value) for form in _forms(value)]
        with self._lock:
            for value in found:
                if self._values.pop(value, self) is self:
                    self._heads[value[:SHORTEST]] += 1
                self._values[value] = None
            while len(self._values) > MOST:
                self._forget(next(iter(self._values)))

    def redact(self, text: str) -> str:
        """The text with `******` for every secret that is known by its value or by the name that stands before it."""
        with self._lock:
            found = self._found(text)
        for value in sorted(found, key=len, reverse=True):  # One may be the beginning of another.
            text = text.replace(value, MASK)
        return mask_text(text)

    def _found(self, text: str) -> list[str]:
        if len(self._values) > 2 * len(text):
            # Many secrets, and a short text: only its own words are looked up.
            last = len(text) - SHORTEST
            if not any(text[at : at + SHORTEST] in self._heads for at in range(last + 1)):
                return []
        return [value for value in self._values if value in text]

    def _forget(self, value: str) -> None:
        del self._values[value]
        self._heads[value[:SHORTEST]] -= 1
        if not self._heads[value[:SHORTEST]]:
            del self._heads[value[:SHORTEST]]


def _forms(value: str) -> Iterator[str]:
    """A value as others may write it: escaped for JSON, Python or a URL, and line by line, as logs are read."""
    forms = {value: None, json.dumps(value)[1:-1]: None, repr(value)[1:-1]: None}
    with suppress(UnicodeEncodeError):  # What is no Unicode is in no URL.
        forms |= {quote(value, safe=""): None, quote_plus(value): None}
    if "\n" in value:
        forms |= {line.strip(): None for line in value.splitlines() if not line.startswith(_FRAME)}
    yield from (form for form in forms if len(form) >= SHORTEST)


HIDDEN = Redactor()
"""One for the process, as its logs are: code that opens a secret tells it."""
redact = HIDDEN.redact
