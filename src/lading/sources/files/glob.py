"""Doris globs as regular expressions.

`*` is any text without `/`, `**` any text, `?` one character but `/`, `[a-c]` and `[!x]` one character of a class,
`{a,b}` alternatives that may nest and hold globs, `{1..3}` whole numbers in either order without padding, and `\\`
takes the next character to the letter. A pattern is matched against the whole key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lading.errors import ConfigError

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
_MAX_RANGE = 10_000
_SPECIAL = "*?[{\\"


@dataclass(frozen=True, slots=True)
class Glob:
    """A compiled pattern."""

    pattern: str
    literal_prefix: str
    """Every key that matches starts with it."""
    regex: re.Pattern[str]
    max_slashes: int | None
    """No key that matches has more; None: there is no bound."""

    def matches(self, key: str) -> bool:
        return self.regex.fullmatch(key) is not None


def compile_glob(pattern: str) -> Glob:
    """Turn a glob into something that matches keys. Raises ConfigError for unclosed brackets and braces."""
    text, _ = _Scan(pattern).alternatives(at=0, depth=0)
    bound = None if "**" in pattern else pattern.count("/")
    return Glob(pattern, _literal_prefix(pattern), re.compile(text, re.DOTALL), bound)


def _literal_prefix(pattern: str) -> str:
    prefix, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and at + 1 < len(pattern):
            at += 1
            char = pattern[at]
        elif char in _SPECIAL:
            break
        prefix += char
        at += 1
    return prefix


class _Scan:
    """Translates one pattern, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def alternatives(self, *, at: int, depth: int) -> tuple[str, int]:
        """One alternative after another, up to the brace that closes them or the end."""
        pattern, parts, current = self._pattern, list[str](), ""
        while at < len(pattern):
            char = pattern[at]
            if depth and char == ",":
                parts.append(current)
                current, at = "", at + 1
            elif char == "}" and depth:
                break
            else:
                piece, at = self._piece(at, depth)
                current += piece
        else:
            if depth:
                raise _bad(pattern, "a `{` is not closed")
        return "|".join([*parts, current]), at

    def _piece(self, at: int, depth: int) -> tuple[str, int]:
        pattern, char = self._pattern, self._pattern[at]
        match char:
            case "*":
                stars = at + 1
                while stars < len(pattern) and pattern[stars] == "*":
                    stars += 1
                return (".*" if stars - at > 1 else "[^/]*"), stars
            case "?":
                return "[^/]", at + 1
            case "[":
                return self._class(at + 1)
            case "{":
                return self._braces(at + 1, depth)
            case "\\" if at + 1 < len(pattern):
                return re.escape(pattern[at + 1]), at + 2
        return re.escape(char), at + 1

    def _braces(self, at: int, depth: int) -> tuple[str, int]:
        found = _RANGE.match(self._pattern, at)
        if found and self._pattern[found.end() :].startswith("}"):
            first, last = sorted((int(found[1]), int(found[2])))
            if last - first >= _MAX_RANGE:
                raise _bad(self._pattern, f"a range has more than {_MAX_RANGE} numbers")
            return f"(?:{'|'.join(map(str, range(first, last + 1)))})", found.end() + 1
        text, end = self.alternatives(at=at, depth=depth + 1)
        return f"(?:{text})", end + 1

    def _class(self, at: int) -> tuple[str, int]:
        """The inside of `[…]`. A `]` that comes first stands for itself."""
        pattern, negated = self._pattern, self._pattern[at : at + 1] in ("!", "^")
        at += negated
        ranges, first = "", True
        while at < len(pattern) and (first or pattern[at] != "]"):
            low, at = self._member(at)
            high = low
            if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("]", ""):
                high, at = self._member(at + 1)
            if low > high:
                raise _bad(pattern, f"the range {low}-{high} is empty")
            ranges += f"{re.escape(low)}-{re.escape(high)}"
            first = False
        if at >= len(pattern):
            raise _bad(pattern, "a `[` is not closed")
        return (f"(?!/)[^{ranges}]" if negated else f"(?!/)[{ranges}]"), at + 1

    def _member(self, at: int) -> tuple[str, int]:
        pattern = self._pattern
        if pattern[at] == "\\" and at + 1 < len(pattern):
            return pattern[at + 1], at + 2
        return pattern[at], at + 1


def _bad(pattern: str, why: str) -> ConfigError:
    msg = f"Invalid uri: the pattern {pattern!r} cannot be read, {why}"
    return ConfigError(msg, left="Nothing was changed.", todo="Write \\ before a character that is meant literally.")
