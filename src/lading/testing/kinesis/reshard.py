"""Splits and merges, chosen by a seed."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

from lading.testing.kinesis.server import wait_until_active


class Resharder:
    """Changes the shards of a stream. The same seed on the same stream does the same."""

    def __init__(self, client: Any, stream: str, *, seed: int = 0, at_most: int = 8) -> None:
        self._client, self._stream = client, stream
        self._random = Random(seed)
        self._at_most = at_most
        self.story: list[str] = []

    def step(self) -> str:
        """One split or merge, and wait until it is done. What was done."""
        shards = self._open_shards()
        pairs = [(low, high) for low, high in pairwise(shards) if _end(low) + 1 == _start(high)]
        splittable = [shard for shard in shards if _end(shard) - _start(shard) > 1]
        wants_merge = self._random.random() < len(shards) / self._at_most
        if pairs and (wants_merge or not splittable):
            told = self._merge(*self._random.choice(pairs))
        else:
            told = self._split(self._random.choice(splittable))
        wait_until_active(self._client, self._stream)
        self.story.append(told)
        return told

    def reach(self, shards: int) -> int:
        """Split or merge until there are so many open shards. How many steps that took."""
        steps = 0
        while (now := len(open_shards := self._open_shards())) != shards:
            if now < shards:
                told = self._split(max(open_shards, key=lambda shard: _end(shard) - _start(shard)))
            else:
                pairs = list(pairwise(open_shards))
                told = self._merge(*self._random.choice(pairs))
            wait_until_active(self._client, self._stream)
            self.story.append(told)
            steps += 1
        return steps

    def _split(self, shard: dict[str, Any]) -> str:
        start, end = _start(shard), _end(shard)
        share = self._random.choice((0.5, self._random.uniform(0.05, 0.95)))
        middle = min(end, max(start + 1, start + int((end - start) * share)))
        self._client.split_shard(StreamName=self._stream, ShardToSplit=shard["ShardId"], NewStartingHashKey=str(middle))
        return f"split {shard['ShardId']}"

    def _merge(self, low: dict[str, Any], high: dict[str, Any]) -> str:
        # The lower one first: kinesis-local takes no other order, the service takes both.
        self._client.merge_shards(
            StreamName=self._stream, ShardToMerge=low["ShardId"], AdjacentShardToMerge=high["ShardId"]
        )
        return f"merge {low['ShardId']} {high['ShardId']}"

    def _open_shards(self) -> list[dict[str, Any]]:
        answer = self._client.list_shards(StreamName=self._stream)
        shards = list(answer["Shards"])
        while token := answer.get("NextToken"):
            answer = self._client.list_shards(NextToken=token)
            shards += answer["Shards"]
        still_open = [shard for shard in shards if "EndingSequenceNumber" not in shard["SequenceNumberRange"]]
        return sorted(still_open, key=_start)


def _start(shard: dict[str, Any]) -> int:
    return int(shard["HashKeyRange"]["StartingHashKey"])


def _end(shard: dict[str, Any]) -> int:
    return int(shard["HashKeyRange"]["EndingHashKey"])
