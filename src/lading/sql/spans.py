"""Parts of a text: where something stands, and how to show it without its secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MASK = "******"
"""What is shown instead of a secret."""

_HIDDEN = "\x00"
_SECRET_WORDS = (
    "access_key",
    "accesskey",
    "secret",
    "session_token",
    "session_key",
    "password",
    "passwd",
    "passphrase",
    "jaas",
    "key.pem",
    "keystore.key",
    "private_key",
    "private.key",
    "oauthbearer.config",
    "user.info",
    "token",
)
_NOT_SECRET = ("location", "ssl.key.location", "token.endpoint.url")
_PAIR = re.compile(
    r"""(?P<head>(?P<quote>['"`]?)(?P<key>[\w.\-]+)(?P=quote)\s*=\s*)
        (?P<value>'(?:[^'\\]|\\.|'')*(?:'|$)|"(?:[^"\\]|\\.|"")*(?:"|$)|[^\s'",();]+)""",
    re.VERBOSE | re.DOTALL,
)
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:/\S+", re.DOTALL)


def is_secret(key: str) -> bool:
    """Whether a property of this name holds something that must not be shown."""
    name = key.lower()
    if any(name.endswith(word) for word in _NOT_SECRET):
        return False
    return any(word in name for word in _SECRET_WORDS)


def is_reference(value: str) -> bool:
    """Whether a value only says where the secret is kept: `env:NAME` or `file:/path`."""
    return _REFERENCE.fullmatch(value) is not None


def mask_text(text: str) -> str:
    """Show a text, also a broken one, with every secret replaced."""
    return re.sub(f"{_HIDDEN}+", MASK, _hide(text))


def _hide(text: str) -> str:
    """Replace secrets letter by letter, so that places stay where they are."""

    def hidden(match: re.Match[str]) -> str:
        value = match["value"]
        quote = value[0] if value[0] in "'\"" else ""
        body = value.removeprefix(quote).removesuffix(quote) if quote else value
        if not is_secret(match["key"]) or is_reference(body) or not body:
            return match[0]
        end = quote if quote and len(value) > 1 and value.endswith(quote) else ""
        return match["head"] + quote + _HIDDEN * (len(value) - len(quote) - len(end)) + end

    return _PAIR.sub(hidden, text)


@dataclass(frozen=True, slots=True)
class Span:
    """Letters `start` up to, not including, `end` of a text."""

    text: str = field(repr=False)
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        return self.start - self._line_start + 1

    @property
    def slice(self) -> str:
        """The part itself, secrets masked."""
        return re.sub(f"{_HIDDEN}+", MASK, _hide(self.text)[self.start : self.end])

    @property
    def excerpt(self) -> tuple[str, str, str]:
        """The first line of the part, cut into what is before, the part, and what is after. Secrets are masked."""
        hidden = _hide(self.text)
        end_of_line = hidden.find("\n", self.start)
        end_of_line = len(hidden) if end_of_line < 0 else end_of_line
        end = min(self.end, end_of_line)
        parts = hidden[self._line_start : self.start], hidden[self.start : end], hidden[end:end_of_line]
        before, wrong, after = (re.sub(f"{_HIDDEN}+", MASK, part).replace("\t", " ").rstrip("\r") for part in parts)
        return before, wrong, after

    @property
    def _line_start(self) -> int:
        return self.text.rfind("\n", 0, self.start) + 1

    def inner(self, start: int, end: int) -> Span:
        """A part of this part; `start` and `end` count from its beginning."""
        return Span(self.text, self.start + start, self.start + end)


NOWHERE = Span("", 0, 0)
"""The span of something that was made by a program and not read from a text."""
