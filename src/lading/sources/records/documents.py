"""The JSON documents in records.

A record is one document, or several with a line for each: so it is taken when it is not one document but its first
line is. A line that is no document is a bad row of its own then. A blank record holds no document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

UNREAD = object()
"""Stands for a document that the judge has to read."""

SPACE = b" \t\r\n"
DEEP_BYTES, _DEEP_BRACKETS = 1600, 800
"""The judge refuses what is nested deeper than Python can call. Only documents of this size can be."""


@dataclass(slots=True)
class Documents:
    """The documents of a run of records."""

    texts: Sequence[bytes]
    parsed: list[Any]
    """What orjson made of each, or UNREAD."""
    owners: Sequence[int] | None = None
    """For each document the record it is from. None: each record is one."""
    _canonical: dict[int, bool] = field(default_factory=dict)

    def is_canonical(self, number: int) -> bool:
        """Whether a document is written to the letter as orjson would write it, numbers too."""
        if number not in self._canonical:
            written = dumps_or_none(self.parsed[number])
            self._canonical[number] = written == self.texts[number].strip(SPACE)
        return self._canonical[number]


def load(values: Sequence[bytes], is_document: Callable[[bytes], bool]) -> Documents:
    """Documents as orjson reads them, where the judge cannot differ. `is_document` is the judge of a single line."""
    try:
        parsed = list(map(orjson.loads, values))
    except orjson.JSONDecodeError:
        return _cut(values, is_document, _loads_or_unread)
    if max(map(len, values)) > DEEP_BYTES:
        parsed = [UNREAD if may_be_deep(value) else found for value, found in zip(values, parsed, strict=True)]
    return Documents(values, parsed)


def leave_unread(values: Sequence[bytes], is_document: Callable[[bytes], bool]) -> Documents:
    """The same documents, all of them for the judge."""
    return _cut(values, is_document, lambda _: UNREAD)


def may_be_deep(text: bytes) -> bool:
    """Whether a document could be nested so deeply that it depends on the reader whether it is read."""
    return len(text) > DEEP_BYTES and text.count(b"[") + text.count(b"{") > _DEEP_BRACKETS


def has_deep_line(block: bytes) -> bool:
    """Whether a line of a block may be such a document."""
    inner = block.count(b"[") + block.count(b"{") - block.count(b"\n")  # One of each line is no nesting.
    return inner > _DEEP_BRACKETS - 2 and any(map(may_be_deep, block.split(b"\n")))


def dumps_or_none(value: Any) -> bytes | None:
    """Compact JSON text; None for what orjson finds too deep."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return None


def _cut(values: Sequence[bytes], is_document: Callable[[bytes], bool], parse: Callable[[bytes], Any]) -> Documents:
    texts, parsed, owners = list[bytes](), list[Any](), list[int]()
    for number, value in enumerate(values):
        whole = parse(value)
        for text in _lines(value, is_document) if whole is UNREAD else [value]:
            texts.append(text)
            parsed.append(parse(text) if whole is UNREAD and text is not value else whole)
            owners.append(number)
    return Documents(texts, parsed, owners)


def _lines(value: bytes, is_document: Callable[[bytes], bool]) -> Iterator[bytes]:
    text = value.strip(SPACE)
    if b"\n" in text and is_document(text[: text.index(b"\n")].strip(SPACE)):
        yield from filter(None, (line.strip(SPACE) for line in text.split(b"\n")))
    elif text:
        yield value


def _loads_or_unread(text: bytes) -> Any:
    if may_be_deep(text):
        return UNREAD
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return UNREAD
