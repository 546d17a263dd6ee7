"""Python values as columns and rows of the protocol."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from mysql_mimic.types import ColumnDefinition, ColumnType, str_len

from lading.mysql.packets import BINARY, ColumnHead
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
    return [_head(name, [row[at] for row in result.rows], charset) for at, name in enumerate(result.columns)]


def _head(name: str, values: Sequence[Any], charset: int) -> ColumnHead:
    kinds = set(map(type, values)) - {type(None)}
    found = {_TYPES.get(kind, _AS_TEXT) for kind in kinds}
    chosen = found.pop() if len(found) == 1 else _AS_TEXT
    if kinds == {int, float}:
        chosen = ColumnType.DOUBLE
    if chosen is ColumnType.LONGLONG and not all(v is None or _SMALLEST <= v <= _LARGEST for v in values):
        chosen = ColumnType.NEWDECIMAL
    if chosen is _AS_TEXT:
        return ColumnHead(name=name, type=chosen, charset=charset)
    scales = {ColumnType.DOUBLE: _NO_SCALE, ColumnType.DATETIME: 6, ColumnType.NEWDECIMAL: _scale(values)}
    numeric = chosen in (ColumnType.TINY, ColumnType.LONGLONG, ColumnType.DOUBLE, ColumnType.NEWDECIMAL)
    flags = ColumnDefinition.NUM_FLAG if numeric else ColumnDefinition.BINARY_FLAG
    return ColumnHead(name=name, type=chosen, charset=BINARY, flags=int(flags), decimals=scales.get(chosen, 0))


def _scale(values: Sequence[Any]) -> int:
    exponents = [value.as_tuple().exponent for value in values if isinstance(value, Decimal)]
    return min(30, max((-e for e in exponents if isinstance(e, int)), default=0))


def text_row(row: Sequence[Any], codec: str) -> bytes:
    """A row of the text protocol."""
    return b"".join(_NULL if value is None else bytes(str_len(_bytes(value, codec))) for value in row)


def binary_row(row: Sequence[Any], heads: Sequence[ColumnHead], codec: str) -> bytes:
    """A row of the binary protocol, which prepared statements use."""
    nulls = bytearray((len(row) + 9) // 8)
    parts: list[bytes] = []
    for at, (value, head) in enumerate(zip(row, heads, strict=True)):
        if value is None:
            nulls[(at + 2) // 8] |= 1 << ((at + 2) % 8)
        else:
            parts.append(_BINARY[head.type](value) if head.type in _BINARY else bytes(str_len(_bytes(value, codec))))
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
            return json.dumps(value, default=str, ensure_ascii=False)
        case _:
            return str(value)


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
