"""Text to tokens. Words are not told apart from keywords here: most keywords may also be names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from lading.errors import SqlError
from lading.sql.syntax.spans import Span


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end of the text"


@dataclass(frozen=True, slots=True)
class Token:
    """One word, string, number or symbol."""

    kind: Kind
    value: str
    """The word as written, the content of a string or of a quoted name."""
    span: Span

    @property
    def upper(self) -> str:
        """The word in capitals, for keywords; empty for everything else."""
        return self.value.upper() if self.kind is Kind.WORD else ""

    def is_symbol(self, symbol: str) -> bool:
        return self.kind is Kind.SYMBOL and self.value == symbol


_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|\#[^\n]*|/\*.*?\*/)
      | (?P<open>/\*)
      | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<unclosed>['"`])
      | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w]))
      | (?P<word>[^\W]\w*)
      | (?P<symbol><=>|->>|->|<=|>=|<>|!=|\|\||&&|<<|>>|::|:=|[^\s\w])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "0": "\0",
    "Z": "\x1a",
    "%": "\\%",
    "_": "\\_",
    "x": "\\x",
    "X": "\\X",
}
_BACKSLASH = re.compile(r"\\(.)", re.DOTALL)


def tokenize(text: str) -> tuple[Token, ...]:
    """Cut a text into tokens; the last one is always the end."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:  # pragma: no cover - every letter is space, word or symbol
            msg = "The text cannot be read"
            raise SqlError(msg, place=Span(text, at, at + 1))
        if match.lastgroup in ("open", "unclosed"):
            raise _unclosed(text, match)
        if match.lastgroup != "space":
            found.append(_token(text, match))
        at = match.end()
    found.append(Token(Kind.END, "", Span(text, len(text), len(text))))
    return tuple(found)


def _token(text: str, match: re.Match[str]) -> Token:
    span = Span(text, match.start(), match.end())
    body = match[0]
    match match.lastgroup:
        case "string":
            return Token(Kind.STRING, unquote(body), span)
        case "quoted":
            return Token(Kind.QUOTED, body[1:-1].replace("``", "`"), span)
        case "number":
            return Token(Kind.NUMBER, body, span)
        case "word":
            return Token(Kind.WORD, body, span)
        case _:
            return Token(Kind.SYMBOL, body, span)


def _unclosed(text: str, match: re.Match[str]) -> SqlError:
    what = "comment" if match[0] == "/*" else "name" if match[0] == "`" else "string"
    closing = "*/" if match[0] == "/*" else match[0]
    msg = f"The {what} that begins here is not closed"
    return SqlError(msg, place=Span(text, match.start(), match.end()), hint=f"no {closing} follows")


def unquote(literal: str) -> str:
    """The content of a string literal.

    Escapes are those of MySQL and Doris. One is not undone: a backslash and `x` stay as they are, because people
    write separators that way and a separator is decoded later.
    """
    quote, body = literal[0], literal[1:-1]
    out: list[str] = []
    at = 0
    while at < len(body):
        if match := _BACKSLASH.match(body, at):
            out.append(_ESCAPES.get(match[1], match[1]))
            at = match.end()
            continue
        out.append(body[at])
        at += 2 if body[at] == quote else 1
    return "".join(out)


def quote_string(value: str, quote: str = '"') -> str:
    """Write a string literal whose content is `value`; in single quotes when that reads better, as for JSON."""
    if quote == '"' and '"' in value and "'" not in value:
        return quote_string(value, "'")
    out = value.replace("\\", "\\\\").replace(quote, quote * 2)
    for letter, plain in (("n", "\n"), ("t", "\t"), ("r", "\r"), ("0", "\0"), ("b", "\b"), ("Z", "\x1a")):
        out = out.replace(plain, f"\\{letter}")
    return f"{quote}{out}{quote}"
