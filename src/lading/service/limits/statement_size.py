"""How large the text of statements may be, the same for every face."""

from __future__ import annotations

import re

_SIGNS = "()[]{},;.*+-/<>=!|&%^~@:?$"
_WORD = re.compile(r"[\w.\-]++")
SHORT = 4096
"""Texts up to here are not looked at: nothing in them can take long."""
MOST_LETTERS = 1024 * 1024
MOST_PARTS = 100_000


def why_too_large(text: str) -> str | None:
    """Why parsing a text would take memory or time from everybody; None when it would not.

    Each word becomes a record of a few hundred bytes.
    """
    if len(text) > MOST_LETTERS:
        return f"at most {MOST_LETTERS} characters are taken"
    if len(text) <= SHORT:
        return None
    for parts, _ in enumerate(_WORD.finditer(text)):
        if parts >= MOST_PARTS:
            return f"more than {MOST_PARTS} words"
    if sum(map(text.count, _SIGNS)) > MOST_PARTS:
        return f"more than {MOST_PARTS} brackets, commas and signs"
    return None
