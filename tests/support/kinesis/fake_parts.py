"""Shards and records of the fake, and what answers look like."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

SHARD_DIGITS = 10**40
"""Numbers of one shard: no other shard has any of them."""


@dataclass(slots=True)
class FakeRecord:
    """One record."""

    sequence: int
    arrival: datetime
    key: str
    data: bytes


@dataclass(slots=True)
class FakeShard:
    """One shard. Records stay where they were written."""

    index: int
    hash_start: int
    hash_end: int
    created: datetime
    parents: tuple[str, ...] = ()
    closed: datetime | None = None
    records: list[FakeRecord] = field(default_factory=list)
    next_number: int = 0

    @property
    def name(self) -> str:
        return f"shardId-{self.index:012d}"

    @property
    def first_number(self) -> int:
        return (49_000_000 + self.index) * SHARD_DIGITS


@dataclass(slots=True)
class Trouble:
    """Calls that fail before they do anything."""

    method: str
    code: str
    times: int
    after: int = 0
    where: Mapping[str, Any] = field(default_factory=dict)


def up_to(records: Iterable[FakeRecord], size: int) -> list[FakeRecord]:
    """Records that fit into an answer: one at least."""
    taken = list[FakeRecord]()
    for record in records:
        size -= len(record.data)
        if size < 0 and taken:
            break
        taken.append(record)
    return taken


def listed(shard: FakeShard, shown_open: set[str]) -> dict[str, Any]:
    """A shard as ListShards shows it."""
    numbers = {"StartingSequenceNumber": str(shard.first_number)}
    if shard.closed is not None and shard.name not in shown_open:
        # An upper bound that is no record's number, as in the service.
        numbers["EndingSequenceNumber"] = str(shard.first_number + SHARD_DIGITS - 1)
    item: dict[str, Any] = {
        "ShardId": shard.name,
        "HashKeyRange": {"StartingHashKey": str(shard.hash_start), "EndingHashKey": str(shard.hash_end)},
        "SequenceNumberRange": numbers,
    }
    item.update(zip(("ParentShardId", "AdjacentParentShardId"), shard.parents, strict=False))
    return item


def hash_of(key: str) -> int:
    """What decides to which shard a key belongs."""
    return int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest(), "big")


def error_of(code: str, message: str) -> ClientError:
    """As botocore raises it."""
    status = 500 if code.startswith("Internal") else 400
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}, code
    )
