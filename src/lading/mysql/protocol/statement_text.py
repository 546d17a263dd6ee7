"""Texts of statements before they are parsed: cutting them apart, their limits, and `?` in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lading.mysql.protocol.errors import TOO_LARGE, Fault
from lading.service.limits.statement_size import why_too_large
from lading.sql.syntax.spans import mask_text

_PART = re.compile(
    r"""(?P<skip>'(?:[^'\\]|\\.|''|\\\Z)*+(?:'|\Z)|"(?:[^"\\]|\\.|""|\\\Z)*+(?:"|\Z)|`[^`]*+(?:`|\Z)
          |/\*.*?(?:\*/|\Z)|--[^\n]*+|\#[^\n]*+|\w++|\s++)
      | (?P<mark>[;?])
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
SHORTEST, FEW = 2048, 64
_URGENT = re.compile(r"\s*+(?:KILL|SHOW\s++(?:FULL\s++)?PROCESSLIST)\b", re.IGNORECASE)


def is_short(text: str) -> bool:
    """Whether a text can be read while others wait: its reading takes a few thousandths of a second at most."""
    return len(text) <= SHORTEST and text.count(",") <= FEW


def is_urgent(text: str) -> bool:
    """Whether it is a statement that looks at or ends those of others, and so must not wait for them."""
    return _URGENT.match(text) is not None


def check_size(text: str) -> None:
    """Refuse a text whose parsing would take memory or time from everybody."""
    why = why_too_large(text)
    if why is not None:
        told = f"The statement of {len(text)} characters is too large: {why}. Nothing was changed."
        raise Fault(TOO_LARGE, "08S01", f"{told} It begins with: {mask_text(' '.join(text[:80].split()))}")


def cut(text: str) -> list[str]:
    """The statements of a text, which are separated by semicolons; empty ones are left out."""
    found: list[str] = []
    start = 0
    for at in _marks(text, ";"):
        found.append(text[start:at])
        start = at + 1
    found.append(text[start:])
    return [part for part in found if part.strip()]


def question_marks(text: str) -> list[int]:
    """Where parameters stand."""
    return list(_marks(text, "?"))


def fill(text: str, marks: Sequence[int], literals: Sequence[str]) -> str:
    """A text with literals in the places of its parameters; nothing inside of a literal is looked at again."""
    parts: list[str] = []
    start = 0
    for at, literal in zip(marks, literals, strict=True):
        parts += [text[start:at], literal]
        start = at + 1
    return "".join([*parts, text[start:]])


def _marks(text: str, wanted: str) -> Iterator[int]:
    if wanted not in text:
        return
    for match in _PART.finditer(text):
        if match.lastgroup == "mark" and match[0] == wanted:
            yield match.start()
