"""Separators of columns and lines: plain, escaped, or in hex."""

from __future__ import annotations

import re

from lading.sql.properties.values import refuse

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "\\": "\\"}
_HEX = ("\\x", "0x")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def parse_separator(name: str, text: str) -> str:
    """The separator that a text means: `\\x01` or `0x01` in hex, `\\t` and the like, or the text itself."""
    if not text:
        msg = f"{name} must not be empty"
        raise refuse(msg, property=name)
    if text[:2].lower() in _HEX:
        return _from_hex(name, text)
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[0]), text)


def _from_hex(name: str, text: str) -> str:
    digits = text[2:]
    if not digits or len(digits) % 2:
        msg = f"{name}: Hex str length error: {text!r} needs an even number of digits"
        raise refuse(msg, property=name, value=text)
    try:
        return bytes.fromhex(digits).decode()
    except ValueError as error:
        msg = f"{name}: Hex str format error: {text!r} is not hex, or not UTF-8"
        raise refuse(msg, property=name, value=text) from error


def show_separator(value: str | None) -> str | None:
    """Text that means this separator and that people can read."""
    if value is None:
        return None
    short = {plain: f"\\{letter}" for letter, plain in _ESCAPES.items() if letter in "tnr\\"}
    if value[:2].lower() not in _HEX and all(letter.isprintable() or letter in short for letter in value):
        return "".join(short.get(letter, letter) for letter in value)
    return "\\x" + value.encode().hex()
