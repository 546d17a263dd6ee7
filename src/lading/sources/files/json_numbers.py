"""Numbers of JSON on the way through pyarrow, which reads them as doubles: `1.10` and the 20th digit would be lost.

So those of some keys are put into quotes before, and come back as the texts they were. A key in quotes and a colon
stand nowhere but before a value: within a string each quote has a backslash before it, so `"key"` cannot end there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.$@ -]+")
_NUMBER = rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"


class NumberQuotes:
    """Puts the numbers of some keys into quotes."""

    def __init__(self, keys: Sequence[str]) -> None:
        names = b"|".join(re.escape(key.encode()) for key in keys)
        self._pattern = re.compile(rb'("(?:%s)"[ \t\r\n]*:[ \t\r\n]*)(%s)(?=[ \t\r\n,}])' % (names, _NUMBER))
        self._is_needed = bool(keys)

    def put(self, text: bytes) -> bytes:
        """The same documents. What is no number of JSON stays as it is."""
        return self._pattern.sub(rb'\1"\2"', text) if self._is_needed else text


def can_quote(key: str) -> bool:
    """Whether a key is written in one way only, so that it is found."""
    return _PLAIN_KEY.fullmatch(key) is not None
