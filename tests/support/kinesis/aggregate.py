"""Records put together as Amazon's producer library does. Written by its format, with no code of the reader."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_MAGIC = bytes.fromhex("f3899ac2")


def aggregate(records: Sequence[tuple[str, bytes] | tuple[str, bytes, int]]) -> bytes:
    """Of (key, data) or (key, data, explicit hash)."""
    keys = list(dict.fromkeys(record[0] for record in records))
    hashes = list(dict.fromkeys(record[2] for record in records if len(record) == 3))
    body = b"".join(_text(1, key.encode()) for key in keys)
    body += b"".join(_text(2, str(number).encode()) for number in hashes)
    for record in records:
        part = _number(1, keys.index(record[0]))
        if len(record) == 3:
            part += _number(2, hashes.index(record[2]))
        body += _text(3, part + _text(3, record[1]))
    return seal(body)


def seal(body: bytes) -> bytes:
    """The mark before it and the digest behind it."""
    return _MAGIC + body + hashlib.md5(body, usedforsecurity=False).digest()


def _text(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
