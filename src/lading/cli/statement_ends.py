r"""Where the statements of a text end: at `;`, or at `\G`, which shows one column on each line as in mysql."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'? | "(?:[^"\\]|\\.|"")*"? | `[^`]*`? | --[^\n]* | \#[^\n]* | /\*.*?(?:\*/|\Z)
      | (?P<end>;|\\[Gg]) | (?P<word>[^\s;])""",
    re.VERBOSE | re.DOTALL,
)
_OPEN = re.compile(r"""(?:'(?:[^'\\]|\\.|'')*|"(?:[^"\\]|\\.|"")*|`[^`]*|/\*(?:(?!\*/).)*)\Z""", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """A text as Lading reads it, letter for letter at the same place."""

    text: str
    vertical: frozenset[int]
    r"""The numbers of statements, from 0, that ended with `\G`."""
    is_complete: bool
    """Nothing but blanks and comments follows the last end."""


def read_ends(text: str) -> Statements:
    r"""Turn each `\G` outside of strings and comments into `;`."""
    letters, vertical, number, has_words = list(text), set[int](), 0, False
    is_open = False
    for match in _PART.finditer(text):
        if match["end"]:
            if match["end"] != ";":
                letters[match.start() : match.end()] = [";", " "]
                vertical.add(number)
            number += has_words
            has_words = False
        elif not match[0].startswith(("--", "#", "/*")):
            has_words = True
        is_open = match.end() == len(text) and _OPEN.fullmatch(match[0]) is not None and not _closed(match[0])
    return Statements(text="".join(letters), vertical=frozenset(vertical), is_complete=not has_words and not is_open)


def _closed(part: str) -> bool:
    """Whether a string or comment has its end."""
    if part.startswith("/*"):
        return len(part) > 3 and part.endswith("*/")
    return len(part) > 1 and part[-1] == part[0] and _OPEN.fullmatch(part) is None
