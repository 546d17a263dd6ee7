"""Documents, or the elements of one outer array, from text that is not kept line by line.

Only brackets and strings are looked at, so that a malformed document costs itself and not its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lading.sources.files.blocks import Lines
from lading.sources.files.json_reference import IS_NO_ARRAY
from lading.sources.files.unpack import Read

_MARK = re.compile(rb'["{}\[\],]')
_STRING_END = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SPACE = b" \t\r\n"
CUT_OFF = "Malformed JSON: the document is cut off"
NOT_CLOSED = "Malformed JSON: the outer array is not closed"


class JsonScanner:
    """Cuts a stream at depth 0, or at depth 1 where the outer array is to be opened."""

    def __init__(self, read: Read, lines: Lines, *, opens_array: bool) -> None:
        self._read = read
        self._lines = lines
        self._text = b""
        self._at = 0
        self._is_open = not opens_array
        self._opens_array = opens_array

    def documents(self) -> Iterator[tuple[bytes, str]]:
        """Raw values, each with what is wrong about its place; empty when nothing is."""
        while True:
            in_array = self._opens_array and self._is_open
            if not self._skip(_SPACE + b"," if in_array else _SPACE):
                if in_array:
                    yield b"", NOT_CLOSED
                return
            first = self._text[self._at : self._at + 1]
            if not self._is_open and first == b"[":
                self._at, self._is_open = self._at + 1, True
            elif in_array and first == b"]":
                self._at, self._is_open = self._at + 1, False
            else:
                raw, is_whole = self._take()
                yield raw, "" if is_whole and self._is_open else IS_NO_ARRAY if is_whole else CUT_OFF
                if not is_whole:
                    return

    def _skip(self, passed: bytes) -> bool:
        """Go to the next byte that matters; False at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in passed:
                    return True
                self._at += 1
            if not self._more():
                return False

    def _more(self) -> bool:
        chunk = self._read(self._lines.block_bytes)
        self._text = self._text[self._at :] + chunk
        self._at = 0
        if len(self._text) > self._lines.max_record + self._lines.block_bytes:
            raise self._lines.too_long()
        return bool(chunk)

    def _take(self) -> tuple[bytes, bool]:
        """One value from its first byte to its last."""
        depth, at = 0, 0
        while True:
            text, start = self._text, self._at
            found = _MARK.search(text, start + at)
            if found is None:
                at = len(text) - start
                if not self._more():
                    return self._cut(at), depth == 0
                continue
            mark, place = found[0], found.start() - start
            if mark == b'"':
                end = _STRING_END.match(text, start + place + 1)
                if end is None:
                    at = place
                    if not self._more():
                        return self._cut(len(self._text) - self._at), False
                    continue
                at = end.end() - start
            elif mark in b"{[":
                depth, at = depth + 1, place + 1
            elif mark == b",":
                if depth == 0 and self._opens_array:
                    return self._cut(place), True
                at = place + 1
            elif depth == 0:
                # The bracket that closes the outer array, or one that nothing opened.
                return self._cut(place if self._opens_array and self._is_open and mark == b"]" else place + 1), True
            else:
                depth, at = depth - 1, place + 1
                if depth == 0:
                    return self._cut(at), True

    def _cut(self, size: int) -> bytes:
        raw = self._text[self._at : self._at + size]
        self._at += size
        return raw.rstrip(_SPACE)
