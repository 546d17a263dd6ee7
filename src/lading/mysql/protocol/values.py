"""Python values as columns and rows of the protocol."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from lading.mysql.protocol.constants import BINARY_FLAG, NUMBER_FLAG, ColumnType, encode_text
from lading.mysql.protocol.packets import BINARY, ColumnHead
from lading.service.result import Result

_TYPES: dict[type, ColumnType] = {
    bool: ColumnType.TINY,
    int: ColumnType.LONGLONG,
    float: ColumnType.DOUBLE,
    Decimal: ColumnType.NEWDECIMAL,
    datetime: ColumnType.DATETIME,
    date: ColumnType.DATE,
    timedelta: ColumnType.TIME,
    bytes: ColumnType.BLOB,
    bytearray: ColumnType.BLOB,
}
_AS_TEXT = ColumnType.VAR_STRING
_NO_SCALE = 31
"""What MySQL says of numbers whose digits behind the point are not fixed."""
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_NULL = b"\xfb"


def heads_of(result: Result, charset: int) -> list[ColumnHead]:
    """The columns of a result. A column whose values are not all of one type is text."""
    seen = [_Seen() for _ in result.columns]
    for row in result.rows:
        for column, value in zip(seen, row, strict=True):
            column.add(value)
    return [_head(name, column, charset) for name, column in zip(result.columns, seen, strict=True)]


class _Seen:
    """What the values of a column have in common. Of a long answer they are not all there at once."""

    __slots__ = ("is_huge", "kinds", "scale")

    def __init__(self) -> None:
        self.kinds: set[type] = set()
        self.is_huge = False
        self.scale = 0

    def add(self, value: Any) -> None:
        if value is None:
            return
        self.kinds.add(type(value))
        if isinstance(value, int):
            self.is_huge = self.is_huge or not _SMALLEST <= value <= _LARGEST
        elif isinstance(value, Decimal):
            exponent = value.as_tuple().exponent
            self.scale = max(self.scale, -exponent if isinstance(exponent, int) else 0)


def _head(name: str, seen: _Seen, charset: int) -> ColumnHead:
    kinds = seen.kinds
    found = {_TYPES.get(kind, _AS_TEXT) for kind in kinds}
    chosen = found.pop() if len(found) == 1 else _AS_TEXT
    if kinds == {int, float}:
        chosen = ColumnType.DOUBLE
    if chosen is ColumnType.LONGLONG and seen.is_huge:
        chosen = ColumnType.NEWDECIMAL
    if chosen is _AS_TEXT:
        return ColumnHead(name=name, type=chosen, charset=charset)
    scales = {ColumnType.DOUBLE: _NO_SCALE, ColumnType.DATETIME: 6, ColumnType.NEWDECIMAL: min(30, seen.scale)}
    numeric = chosen in (ColumnType.TINY, ColumnType.LONGLONG, ColumnType.DOUBLE, ColumnType.NEWDECIMAL)
    flags = NUMBER_FLAG if numeric else BINARY_FLAG
    return ColumnHead(name=name, type=chosen, charset=BINARY, flags=flags, decimals=scales.get(chosen, 0))


def text_row(row: Sequence[Any], codec: str) -> bytes:
    """A row of the text protocol."""
    return b"".join(_NULL if value is None else encode_text(_bytes(value, codec)) for value in row)


def binary_row(row: Sequence[Any], heads: Sequence[ColumnHead], codec: str) -> bytes:
    """A row of the binary protocol, which prepared statements use."""
    nulls = bytearray((len(row) + 9) // 8)
    parts: list[bytes] = []
    for at, (value, head) in enumerate(zip(row, heads, strict=True)):
        if value is None:
            nulls[(at + 2) // 8] |= 1 << ((at + 2) % 8)
        else:
            parts.append(_BINARY[head.type](value) if head.type in _BINARY else encode_text(_bytes(value, codec)))
    return b"\0" + bytes(nulls) + b"".join(parts)


def _bytes(value: Any, codec: str) -> bytes:
    return bytes(value) if isinstance(value, bytes | bytearray) else text_of(value).encode(codec, "replace")


def text_of(value: Any) -> str:
    """A value as people read it."""
    match value:
        case str():
            return value
        case bool():
            return "1" if value else "0"
        case float():
            return repr(value)
        case datetime():
            return _plain(value).isoformat(sep=" ")
        case timedelta():
            return _time(value)
        case list() | tuple() | dict():
            return json.dumps(_with_text_keys(value), default=str, ensure_ascii=False)
        case _:
            return str(value)


def _with_text_keys(value: Any) -> Any:
    """The keys of a MAP may be anything; those of JSON are texts."""
    match value:
        case dict():
            return {text_of(key): _with_text_keys(each) for key, each in value.items()}
        case list() | tuple():
            return [_with_text_keys(each) for each in value]
    return value


def _plain(value: datetime) -> datetime:
    """MySQL knows no time zones; times with one are told in UTC."""
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _time(value: timedelta) -> str:
    sign = "-" if value < timedelta(0) else ""
    seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    fraction = f".{micros:06}" if micros else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def _binary_datetime(value: datetime) -> bytes:
    at = _plain(value)
    return struct.pack("<BHBBBBBI", 11, at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond)


def _binary_time(value: timedelta) -> bytes:
    seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    days, rest = divmod(seconds, 86_400)
    return struct.pack("<BBIBBBI", 12, value < timedelta(0), days, rest // 3600, rest // 60 % 60, rest % 60, micros)


_BINARY: dict[ColumnType, Callable[[Any], bytes]] = {
    ColumnType.TINY: lambda value: struct.pack("<b", value),
    ColumnType.LONGLONG: lambda value: struct.pack("<q", value),
    ColumnType.DOUBLE: lambda value: struct.pack("<d", value),
    ColumnType.DATETIME: _binary_datetime,
    ColumnType.DATE: lambda value: struct.pack("<BHBB", 4, value.year, value.month, value.day),
    ColumnType.TIME: _binary_time,
}
