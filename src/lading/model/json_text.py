"""JSON in which numbers keep the letters that somebody wrote."""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import Any


class Digits(str):
    """The letters of a number, to tell it from a string."""

    __slots__ = ()


def render_json(value: Any) -> str:
    """Compact JSON text in which numbers keep their letters."""
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{encode_basestring(key)}:{render_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(render_json(item) for item in value) + "]"
    return {None: "null", True: "true", False: "false"}[value]
