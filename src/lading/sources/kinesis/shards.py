"""Shards as they are listed, and what can be told from a listing alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

LAST_HASH = 2**128 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    name: str
    hash_start: int
    hash_end: int
    parents: tuple[str, ...] = ()
    is_open: bool = True
    """The service gave no ending number. A child may be listed while its parent still looks open."""


def shard_of(item: Mapping[str, Any]) -> Shard:
    """From an answer of ListShards."""
    parents = (item.get("ParentShardId"), item.get("AdjacentParentShardId"))
    hashes = item["HashKeyRange"]
    return Shard(
        name=item["ShardId"],
        hash_start=int(hashes["StartingHashKey"]),
        hash_end=int(hashes["EndingHashKey"]),
        parents=tuple(parent for parent in parents if parent),
        is_open=not item.get("SequenceNumberRange", {}).get("EndingSequenceNumber"),
    )


def open_shards(shards: Mapping[str, Shard]) -> set[str]:
    """Shards that take records. One with a child takes none, whatever it says of itself."""
    return {name for name, shard in shards.items() if shard.is_open} - parents_of(shards.values())


def parents_of(shards: Iterable[Shard]) -> set[str]:
    """Every shard that a child names."""
    return {parent for shard in shards for parent in shard.parents}


def first_hole_or_none(shards: Iterable[Shard]) -> tuple[int, int] | None:
    """The first part of the hash range that no shard covers."""
    expected = 0
    for shard in sorted(shards, key=lambda shard: shard.hash_start):
        if shard.hash_start > expected:
            return expected, shard.hash_start - 1
        expected = max(expected, shard.hash_end + 1)
    return None if expected > LAST_HASH else (expected, LAST_HASH)


def overlaps_by_lineage(shards: Mapping[str, Shard]) -> bool:
    """Whether a shard stands beside its own parent: then these were not all open at one moment."""
    return any(parent in shards for parent in parents_of(shards.values()))


def descendants(shards: Mapping[str, Shard], of: Iterable[str]) -> set[str]:
    """Every shard that comes from these, however late."""
    found, grew = set(of), True
    start = set(found)
    while grew:
        more = {name for name, shard in shards.items() if found.intersection(shard.parents)} - found
        found |= more
        grew = bool(more)
    return found - start


def ancestors(shards: Mapping[str, Shard], of: Iterable[str]) -> set[str]:
    """Every listed shard that these come from."""
    found, fresh = set[str](), set(of)
    while fresh:
        fresh = {parent for name in fresh for parent in shards[name].parents if parent in shards} - found
        found |= fresh
    return found
