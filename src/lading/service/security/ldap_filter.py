"""Filters of searches, as people write them (RFC 4515).

A filter is read once, with its placeholders in it; values are put into what was read. Whatever a value contains, it can
therefore not change what is searched for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from lading.service.security.ldap_ber import SEQUENCE, pack, pack_text

_LISTS = {"&": 0xA0, "|": 0xA1}
_NOT, _SUBSTRINGS, _PRESENT, _EXTENSIBLE = 0xA2, 0xA4, 0x87, 0xA9
_COMPARISONS = {"=": 0xA3, ">=": 0xA5, "<=": 0xA6, "~=": 0xA8}
_ITEM = re.compile(r"([A-Za-z0-9.;_-]*)(:dn)?(?::([A-Za-z0-9.]+))?(:=|>=|<=|~=|=)([^()]*)\Z")
_PIECES = re.compile(r"(\{user\}|\{dn\}|\\[0-9a-fA-F]{2}|\\)")
_MOST_DEPTH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """One filter; those of which it is made are its parts."""

    tag: int
    parts: tuple[Filter, ...] = ()
    attribute: str = ""
    rule: str = ""
    with_dn: bool = False
    values: tuple[str, ...] = ()
    """As they were written; of a filter with stars, what is between them."""

    def encode(self, given: Mapping[str, str]) -> bytes:
        """Its bytes, with these values for `user` and `dn`."""
        value = partial(_value, given=given)
        if self.parts:
            return pack(self.tag, *(part.encode(given) for part in self.parts))
        if self.tag == _PRESENT:
            return pack_text(self.attribute, _PRESENT)
        if self.tag == _SUBSTRINGS:
            last = len(self.values) - 1
            tags = [0x80 if at == 0 else 0x82 if at == last else 0x81 for at in range(last + 1)]
            known = [pack_text(value(text), tag) for text, tag in zip(self.values, tags, strict=True) if text]
            return pack(self.tag, pack_text(self.attribute), pack(SEQUENCE, *known))
        if self.tag == _EXTENSIBLE:
            rule = pack_text(self.rule, 0x81) if self.rule else b""
            name = pack_text(self.attribute, 0x82) if self.attribute else b""
            in_dn = pack(0x84, b"\xff") if self.with_dn else b""
            return pack(self.tag, rule, name, pack_text(value(self.values[0]), 0x83), in_dn)
        return pack(self.tag, pack_text(self.attribute), pack_text(value(self.values[0])))


def parse_filter(text: str) -> Filter:
    """Read a filter such as `(&(objectClass=person)(uid={user}))`. Raises ValueError."""
    found, end = _parse(text.strip(), 0, 0)
    if end != len(text.strip()):
        msg = "something follows the filter"
        raise ValueError(msg)
    return found


def _parse(text: str, at: int, depth: int) -> tuple[Filter, int]:
    if depth > _MOST_DEPTH or text[at : at + 1] != "(":
        msg = "a filter begins with a bracket"
        raise ValueError(msg)
    kind = text[at + 1 : at + 2]
    if kind not in ("&", "|", "!"):
        end = text.find(")", at)
        if end < 0:
            msg = "a bracket is not closed"
            raise ValueError(msg)
        return _item(text[at + 1 : end]), end + 1
    parts, end = [], at + 2
    while text[end : end + 1] == "(":
        part, end = _parse(text, end, depth + 1)
        parts.append(part)
    if text[end : end + 1] != ")" or not parts or (kind == "!" and len(parts) != 1):
        msg = f"what follows {kind} is not a filter"
        raise ValueError(msg)
    return Filter(tag=_LISTS.get(kind, _NOT), parts=tuple(parts)), end + 1


def _item(text: str) -> Filter:
    match = _ITEM.match(text)
    if match is None:
        msg = f"'{text}' is not a comparison"
        raise ValueError(msg)
    attribute, in_dn, rule, sign, value = match[1], bool(match[2]), match[3] or "", match[4], match[5]
    if sign == ":=":
        return Filter(tag=_EXTENSIBLE, attribute=attribute, rule=rule, with_dn=in_dn, values=(value,))
    if not attribute or in_dn or rule:
        msg = f"'{text}' is not a comparison"
        raise ValueError(msg)
    if sign == "=" and value == "*":
        return Filter(tag=_PRESENT, attribute=attribute)
    if sign == "=" and "*" in value:
        return Filter(tag=_SUBSTRINGS, attribute=attribute, values=tuple(value.split("*")))
    _value(value, given={"user": "", "dn": ""})
    return Filter(tag=_COMPARISONS[sign], attribute=attribute, values=(value,))


def _value(text: str, *, given: Mapping[str, str]) -> bytes:
    found = b""
    for piece in _PIECES.split(text):
        if piece == "\\":
            msg = "a backslash is followed by two hexadecimal digits"
            raise ValueError(msg)
        if piece.startswith("\\"):
            found += bytes.fromhex(piece[1:])
        elif piece in ("{user}", "{dn}"):
            found += given[piece[1:-1]].encode("utf-8", "surrogatepass")
        else:
            found += piece.encode()
    return found


def escape_in_dn(text: str) -> str:
    """A value as a part of a name (RFC 4514): whatever could end the part is written as its bytes."""
    plain = {each for each in text if each.isalnum() or each in "._@-"}
    return "".join(each if each in plain else _as_bytes(each) for each in text)


def _as_bytes(letter: str) -> str:
    return "".join(f"\\{byte:02x}" for byte in letter.encode("utf-8", "surrogatepass"))
