"""Values as JSON can carry them."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from lading.service.views.build import printable, redacted

_MOST_EXACT = 2**53


def plain_data(value: Any) -> Any:
    """A value of a row. What people have in their tables is theirs and is not changed, whatever it looks like."""
    return plain(value, printable)


def plain(value: Any, told: Callable[[str], str] = redacted) -> Any:
    """A value of an answer, without secrets.

    Decimals, and integers that a JavaScript number cannot hold, become text, so that no digit is lost; what JSON has
    no word for (NaN, infinity, bytes) does too.
    """
    match value:
        case None | bool():
            return value
        case int():
            return value if -_MOST_EXACT <= value <= _MOST_EXACT else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return told(value)
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case Enum():
            return plain(value.value, told)
        case Mapping():
            return {told(str(name)): plain(item, told) for name, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item, told) for item in value]
        case Decimal() | timedelta():
            return str(value)
    return told(str(value))


_NAMED: Mapping[type, str] = {
    Decimal: "decimal",
    datetime: "datetime",
    date: "date",
    time: "time",
    bytes: "bytes",
    bytearray: "bytes",
    int: "integer",
    float: "double",
}


def json_type(value: Any) -> str:
    """What a value is, where JSON has no word for it; empty when it is what it looks like."""
    return _NAMED.get(type(value), "")
