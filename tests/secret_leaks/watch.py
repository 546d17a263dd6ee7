"""Looks for secrets in whatever it is shown, and remembers where it found one."""

from __future__ import annotations

import base64
import threading

from lading.sql.syntax.spans import MASK
from lading.testing.marked import MARK

_SHOWN = 160


class Watch:
    """One for the whole run. Threads of servers show it things, too."""

    def __init__(self, mark: str = MARK) -> None:
        self._words = _forms(mark)
        self._mark = mark
        self._lock = threading.Lock()
        self._leaks: list[str] = []
        self._unmarked: list[str] = []

    def learn(self, word: str) -> None:
        """A secret that somebody else chose, and that has no mark."""
        with self._lock:
            self._words = (*self._words, word.encode())

    def is_known(self, word: str) -> bool:
        """Whether this would be found."""
        return any(form in word.encode("utf-8", "surrogatepass") for form in self._words)

    def entered(self, word: str, where: str) -> None:
        """A secret was given to Lading. One that nobody would look for is a fault of its test."""
        if word != MASK and not self.is_known(word):
            with self._lock:
                self._unmarked.append(f"{where}: {word!r} holds no mark; use lading.testing.marked.secret")

    def look(self, said: object, where: str) -> bool:
        """Whether a secret is in what was said; then it is remembered."""
        raw = said if isinstance(said, bytes) else str(said).encode("utf-8", "surrogatepass")
        for form in self._words:
            at = raw.find(form)
            if at >= 0:
                around = raw[max(0, at - _SHOWN) : at + _SHOWN].decode("utf-8", "replace")
                with self._lock:
                    self._leaks.append(f"{where}: …{around}…")
                return True
        return False

    def take(self) -> list[str]:
        """What was found since the last time."""
        with self._lock:
            found, self._leaks, self._unmarked = [*self._leaks, *self._unmarked], [], []
        return found


def _forms(mark: str) -> tuple[bytes, ...]:
    """The mark as it is, and as it looks in Base64 (a header that asks with a password) at each place it can have."""
    forms = [mark.encode()]
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + mark.encode())
        # The first and the last characters also depend on what stands around the mark.
        forms.append(coded[4 if shift else 0 :].rstrip(b"=")[:-1])
    return tuple(forms)


WATCH = Watch()
