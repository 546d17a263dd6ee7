"""Taking apart what Amazon's producer library puts together.

    F3 89 9A C2 | AggregatedRecord (protobuf) | MD5 of it
    AggregatedRecord { repeated string partition_key_table = 1; repeated string explicit_hash_key_table = 2;
                       repeated Record records = 3 }
    Record { uint64 partition_key_index = 1; optional uint64 explicit_hash_key_index = 2; bytes data = 3;
             repeated Tag tags = 4 }

Whatever is not exactly that is a plain record. All records of an aggregate share its number; they are told apart by
their place in it, the sub-sequence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"\xf3\x89\x9a\xc2"
_DIGEST = 16
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_SHIFT = 63


@dataclass(frozen=True, slots=True)
class UserRecord:
    """One record as its producer wrote it."""

    key: str
    explicit_hash: int | None
    data: bytes

    @property
    def hash(self) -> int:
        """What decides to which shard it belongs."""
        if self.explicit_hash is not None:
            return self.explicit_hash
        return int.from_bytes(hashlib.md5(self.key.encode(), usedforsecurity=False).digest(), "big")


def user_records_or_none(data: bytes) -> list[UserRecord] | None:
    """The records of an aggregate, in their order. None: it is a plain record."""
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + _DIGEST:
        return None
    body, digest = data[len(MAGIC) : -_DIGEST], data[-_DIGEST:]
    if hashlib.md5(body, usedforsecurity=False).digest() != digest:
        return None
    try:
        return _aggregated(body)
    except ValueError:
        return None


def all_belong(records: list[UserRecord], hash_start: int, hash_end: int) -> bool:
    """Whether no record is of another shard. After a reshard a producer sends those that landed wrong once more."""
    return all(hash_start <= record.hash <= hash_end for record in records)


def _aggregated(body: bytes) -> list[UserRecord]:
    keys, hashes, parts = list[str](), list[int](), list[bytes]()
    for number, value in _fields(body):
        if number in (1, 2, 3) and not isinstance(value, bytes):
            raise ValueError
        match number, value:
            case 1, bytes():
                keys.append(value.decode())
            case 2, bytes():
                hashes.append(int(value.decode()))
            case 3, bytes():
                parts.append(value)
    return [_record(part, keys, hashes) for part in parts]


def _record(part: bytes, keys: list[str], hashes: list[int]) -> UserRecord:
    key_index: int | None = None
    hash_index: int | None = None
    data: bytes | None = None
    for number, value in _fields(part):
        match number, value:
            case 1, int():
                key_index = value
            case 2, int():
                hash_index = value
            case 3, bytes():
                data = value
            case ((1 | 2 | 3), _):
                raise ValueError
    if key_index is None or data is None or key_index >= len(keys):
        raise ValueError
    if hash_index is not None and hash_index >= len(hashes):
        raise ValueError
    return UserRecord(keys[key_index], None if hash_index is None else hashes[hash_index], data)


def _fields(body: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a message. Unknown ones come too: the caller passes over them."""
    at = 0
    while at < len(body):
        tag, at = _varint(body, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise ValueError
        if wire == _VARINT:
            value, at = _varint(body, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _varint(body, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError
        if at + size > len(body):
            raise ValueError
        yield number, body[at : at + size]
        at += size


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(body) or shift > _MAX_SHIFT:
            raise ValueError
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
