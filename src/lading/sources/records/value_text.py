"""Values of Avro and Protobuf as texts that casts understand.

Decimals are written with all their digits, times as ISO 8601 with `Z` where they are instants, bytes as UTF-8 where
they are and else as base64, enums by their names, everything nested as compact JSON.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from types import NoneType
from typing import Any
from uuid import UUID

from lading.model.json_text import Digits, render_json

Scalar = str | int | float | None
_MAX_DIGITS = 10_000
"""A few bytes can claim a decimal with billions of zeros."""
_SIMPLE = (str, int, float, bool, NoneType)


def text_of(value: Any) -> Scalar:
    """A value that `text_column` takes."""
    if type(value) in _SIMPLE:
        return value  # type: ignore[no-any-return]  # its type was looked at
    if isinstance(value, Mapping | list | tuple):
        return render_json(tree_of(value))
    return _leaf(value)


def tree_of(value: Any) -> Any:
    """The same value, made of what `render_json` takes."""
    if isinstance(value, Mapping):
        return {str(text_of(key)): tree_of(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [tree_of(item) for item in value]
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return Digits(value)
    if isinstance(value, float):
        return Digits(repr(value)) if isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return Digits(_leaf(value))
    return _leaf(value)


def _leaf(value: Any) -> str:
    if isinstance(value, Decimal):
        if value.is_finite() and abs(value.adjusted()) > _MAX_DIGITS:
            msg = "a decimal has too many digits"
            raise ValueError(msg)
        return format(value, "f")
    if isinstance(value, datetime):
        written = value.isoformat()
        return written.removesuffix("+00:00") + "Z" if written.endswith("+00:00") else written
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return format(Decimal(value // timedelta(microseconds=1)).scaleb(-6).normalize(), "f")
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value))
    if isinstance(value, UUID):
        return str(value)
    msg = f"a value of the type {type(value).__name__} has no text"
    raise ValueError(msg)


def _bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return b64encode(value).decode()
