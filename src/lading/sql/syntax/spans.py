"""Parts of a text: where something is, and how to show it without its secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

MASK = "******"
"""What is shown instead of a secret."""

PLACEHOLDERS = ("…", "<new password>")
"""What advice writes in the place of a secret. Shown as it is, and refused as a password."""
_HIDDEN = "\x00"
_SECRET_NAME = re.compile(
    r"""access key | account key | api key | session key | private key | keystore key | key pem
      | secret | token | password | passwd | passphrase | pwd
      | jaas | oauthbearer config | user info | connection string | credential $""".replace(" ", ""),
    re.VERBOSE,
)
"""What makes a name one of a secret, when everything but letters and digits is left out of it."""
_PLACE_NAME = re.compile(r"(location|file|endpoint\.ur[il])$")
"""Names of places where something is kept or asked for, whatever else is in them."""
_LOGIN_IN_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/\s:@]*:([^/\s@]+)@")
_QUERY_OF_URL = re.compile(r"[?&;]([^=&;?\s]+)=([^&;\s]+)")
_STRING = r"""(?:'(?:[^'\\]|\\.|'')*(?:'|$)|"(?:[^"\\]|\\.|"")*(?:"|$))"""
_DOUBLED = r"""(?:''(?![\s,;)])[^'\n]+''|""(?![\s,;)])[^"\n]+"")"""
"""A string inside a string, as in PREPARE."""
_GAP = r"(?:\s|--[^\n]*(?:\n|$)|\#[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*\*/)"
_PAIR = re.compile(
    rf"""(?P<head>(?P<quote>['"`]{{0,2}})(?<![\w.\-])(?P<key>[\w.\-]++)(?P=quote){_GAP}*+={_GAP}*+)
        (?P<value>{_DOUBLED}|{_STRING}|[^\s'",();]+)""",
    re.VERBOSE | re.DOTALL,
)
_STRINGS = rf"{_STRING}(?:{_GAP}*{_STRING})*"
_PASSWORD = re.compile(
    rf"""\bIDENTIFIED{_GAP}+(?:WITH{_GAP}+\S+{_GAP}+)?(?:BY|AS)\b(?:{_GAP}+PASSWORD\b)?{_GAP}*
         (?P<value>{_DOUBLED}|{_STRINGS}|[^'"\s][^\n]*)
       | \b(?:PASSWORD|IDENTIFIED)(?:{_GAP}+|\s*\(\s*)(?P<string>{_STRINGS})
       | \b(?:CREATE|ALTER){_GAP}+USER{_GAP}+(?:IF{_GAP}+(?:NOT{_GAP}+)?EXISTS{_GAP}+)?
         (?:{_STRING}|`[^`]*`|[\w.\-]+)(?:\s*@\s*(?:{_STRING}|\S+))?{_GAP}+(?P<literal>{_STRING})""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""A password of a user, also where it was written in the wrong way; without quotes, it is the rest of the line."""
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:/[^\x00-\x1f]+")


def is_secret(key: str) -> bool:
    """Whether a property of this name holds something that must not be shown."""
    name = key.lower()
    if _PLACE_NAME.search(name):
        return False
    return _SECRET_NAME.search(re.sub(r"[^a-z0-9]", "", name)) is not None


def is_reference(value: str) -> bool:
    """Whether a value only says where the secret is kept: `env:NAME` or `file:/path`."""
    return _REFERENCE.fullmatch(value) is not None


def is_hidden(key: str, value: str) -> bool:
    """Whether this value of a property is not shown: a secret that is written out, or a URL with a password in it."""
    return bool(value) and ((is_secret(key) and not is_reference(value)) or bool(passwords_in(value)))


def passwords_in(value: str) -> list[str]:
    """The secrets in a URL: beside its user, and in its query, as JDBC has them."""
    if "://" not in value:
        return []
    asked = [found[2] for found in _QUERY_OF_URL.finditer(value) if is_secret(unquote(found[1]))]
    return [found[1] for found in _LOGIN_IN_URL.finditer(value)] + asked


def mask_text(text: str) -> str:
    """Show a text, also a broken one, with every secret replaced."""
    return re.sub(f"{_HIDDEN}+", MASK, _hide(text))


def _hide(text: str) -> str:
    """Replace secrets letter by letter, so that places stay where they are."""

    def pair(match: re.Match[str]) -> str:
        value = match["value"]
        quote = value[0] if value[0] in "'\"" else ""
        body = value.removeprefix(quote).removesuffix(quote) if quote else value
        is_shown = body in PLACEHOLDERS or not is_hidden(match["key"], body)
        return match[0] if is_shown else match["head"] + _hidden(value)

    def password(match: re.Match[str]) -> str:
        value = match["value"] or match["string"] or match["literal"]
        if value[1:-1] in PLACEHOLDERS:
            return match[0]
        return match[0].removesuffix(value) + _hidden(value)

    return _PAIR.sub(pair, _PASSWORD.sub(password, text))


def _hidden(value: str) -> str:
    """As many letters that stand for nothing, between the quotes when there are some."""
    quote = value[0] if value[0] in "'\"" else ""
    end = quote if quote and len(value) > 1 and value.endswith(quote) else ""
    return quote + _HIDDEN * (len(value) - len(quote) - len(end)) + end


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
