"""A stream in memory, behind the calls of a boto3 client, that does what Kinesis does and what emulators cannot show.

Deterministic: it has no threads and no chance, and its time is that of the clock it is given. Trouble is scripted.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from lading.clock import Clock
from lading.sources.kinesis.errors import EXPIRED_ITERATOR, EXPIRED_TOKEN, INVALID, NOT_FOUND
from lading.sources.kinesis.shards import LAST_HASH
from tests.support.kinesis.fake_parts import (
    SHARD_DIGITS,
    FakeRecord,
    FakeShard,
    Trouble,
    error_of,
    hash_of,
    listed,
    up_to,
)

MAX_ANSWER_BYTES = 10 * 1024 * 1024
ITERATOR_LIFE_S = 300.0
TOKEN_LIFE_S = 300.0
_THROTTLED = "ProvisionedThroughputExceededException"


class FakeKinesis:
    """One stream.

    `trimmed_as` says what a position before the horizon does: `horizon` puts the iterator there silently, `stuck`
    answers nothing and stays behind by the whole retention, `refused` is an InvalidArgumentException.
    """

    def __init__(self, clock: Clock, *, stream: str = "clicks", shards: int = 1, retention_hours: int = 24) -> None:
        self.clock = clock
        self.stream = stream
        self.retention_hours = retention_hours
        self._trimmed_to = datetime.min.replace(tzinfo=UTC)
        self.created = clock.now()
        self.shards: dict[str, FakeShard] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.troubles: list[Trouble] = []
        self.trimmed_as = "horizon"
        self.page_size = 1_000
        self.empty_answers: dict[str, int] = {}
        """Per shard: how many empty answers come before records, as where nothing was written for long."""
        self.throttle_after_bytes: int | None = None
        """After an answer of so many bytes the next two calls for the shard are throttled."""
        self.server_ahead = timedelta(0)
        self.trims = True
        self._hidden: list[set[str]] = []
        self._shown_open: list[set[str]] = []
        self._throttled: dict[str, int] = {}
        self._expired_before = -1
        self._iterators: list[tuple[str, int, float]] = []
        self._tokens: dict[str, tuple[list[FakeShard], float]] = {}
        self._lock = threading.RLock()
        step = (LAST_HASH + 1) // shards
        for number in range(shards):
            end = LAST_HASH if number == shards - 1 else (number + 1) * step - 1
            self._add(number * step, end, ())

    # What a test does to it.

    def put(self, data: bytes, *, key: str = "k", shard: str | None = None) -> int:
        """Write a record; to a shard that is named, also when the key does not belong there."""
        with self._lock:
            target = self.shards[shard] if shard else self._shard_for(hash_of(key))
            number = target.first_number + target.next_number * 7 + 1
            target.next_number += 1
            target.records.append(FakeRecord(number, self.clock.now(), key, data))
            return number

    def split(self, name: str, *, at: int | None = None) -> tuple[str, str]:
        """Two children for one parent. `at` is the first hash of the second; none: in the middle."""
        parent = self.shards[name]
        second = (parent.hash_start + parent.hash_end) // 2 + 1 if at is None else at
        self._close(parent)
        left = self._add(parent.hash_start, second - 1, (name,))
        return left, self._add(second, parent.hash_end, (name,))

    def merge(self, name: str, adjacent: str) -> str:
        """One child for two parents."""
        pair = self.shards[name], self.shards[adjacent]
        for shard in pair:
            self._close(shard)
        return self._add(min(s.hash_start for s in pair), max(s.hash_end for s in pair), (name, adjacent))

    def fail(self, method: str, code: str, *, times: int = 1, after: int = 0, **where: Any) -> None:
        """Let calls fail: `times` of them, after `after` good ones, and only those with these arguments."""
        self.troubles.append(Trouble(method, code, times, after, where))

    def hide(self, *names: str, listings: int = 1) -> None:
        """Shards that the next listings lack: they are caught in the middle of a reshard."""
        self._hidden += [set(names)] * listings

    def show_open(self, *names: str, listings: int = 1) -> None:
        """Closed shards that still look open in the next listings."""
        self._shown_open += [set(names)] * listings

    def expire_iterators(self) -> None:
        """Every iterator there is."""
        self._expired_before = len(self._iterators) - 1

    def recreate(self, shards: int = 1) -> None:
        """Delete the stream and make it again."""
        troubled = self.clock, self.stream
        self.__init__(troubled[0], stream=troubled[1], shards=shards, retention_hours=self.retention_hours)  # type: ignore[misc]

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """No trouble meanwhile, for those who write and reshard."""
        kept = self.troubles, self._hidden, self._shown_open
        self.troubles, self._hidden, self._shown_open = [], [], []
        try:
            yield
        finally:
            self.troubles, self._hidden, self._shown_open = kept

    def calls_of(self, method: str) -> list[dict[str, Any]]:
        return [arguments for name, arguments in self.calls if name == method]

    # The calls of the client.

    def describe_stream_summary(self, **arguments: Any) -> dict[str, Any]:
        with self._lock:
            self._begin("describe_stream_summary", arguments)
            self._check_name(arguments, "DescribeStreamSummary")
            summary = {
                "StreamName": self.stream,
                "StreamStatus": "ACTIVE",
                "RetentionPeriodHours": self.retention_hours,
                "StreamCreationTimestamp": self.created,
                "OpenShardCount": sum(shard.closed is None for shard in self.shards.values()),
            }
            return self._answer(StreamDescriptionSummary=summary)

    def list_shards(self, **arguments: Any) -> dict[str, Any]:
        with self._lock:
            self._begin("list_shards", arguments)
            token = arguments.get("NextToken")
            if token is None:
                self._check_name(arguments, "ListShards")
                hidden = self._hidden.pop(0) if self._hidden and "ShardFilter" not in arguments else set()
                wanted = self._filtered(arguments.get("ShardFilter"))
                rest = [shard for shard in wanted if shard.name not in hidden]
            else:
                if arguments.keys() & {"StreamName", "StreamARN", "ShardFilter", "ExclusiveStartShardId"}:
                    raise error_of(INVALID, "NextToken and StreamName cannot be provided together")
                rest, made = self._tokens[token]
                if self.clock.monotonic_s() - made > TOKEN_LIFE_S:
                    raise error_of(EXPIRED_TOKEN, "The token has expired")
            size = min(self.page_size, arguments.get("MaxResults", 1_000))
            shown_open = self._shown_open.pop(0) if self._shown_open and "ShardFilter" not in arguments else set()
            answer = self._answer(Shards=[listed(shard, shown_open) for shard in rest[:size]])
            if len(rest) > size:
                answer["NextToken"] = f"token-{len(self._tokens)}"
                self._tokens[answer["NextToken"]] = rest[size:], self.clock.monotonic_s()
            return answer

    def get_shard_iterator(self, **arguments: Any) -> dict[str, Any]:
        with self._lock:
            self._begin("get_shard_iterator", arguments)
            self._check_name(arguments, "GetShardIterator")
            shard = self.shards.get(arguments["ShardId"])
            if shard is None or self._is_expired(shard):
                raise error_of(NOT_FOUND, f"Shard {arguments['ShardId']} does not exist")
            return self._answer(ShardIterator=self._new_iterator(shard, self._first_place(shard, arguments)))

    def get_records(self, **arguments: Any) -> dict[str, Any]:
        with self._lock:
            number = int(arguments["ShardIterator"].removeprefix("iterator-"))
            name, place, made = self._iterators[number]
            self._begin("get_records", {**arguments, "ShardId": name})
            if number <= self._expired_before or self.clock.monotonic_s() - made > ITERATOR_LIFE_S:
                raise error_of(EXPIRED_ITERATOR, "Iterator expired")
            if self._throttled.get(name, 0):
                self._throttled[name] -= 1
                raise error_of(_THROTTLED, f"Rate exceeded for shard {name}")
            return self._records(self.shards[name], place, arguments.get("Limit", 10_000))

    def put_records(self, **arguments: Any) -> dict[str, Any]:
        with self._lock:
            self._begin("put_records", arguments)
            told = [self._taken(record) for record in arguments["Records"]]
            return self._answer(FailedRecordCount=0, Records=told)

    def split_shard(self, **arguments: Any) -> dict[str, Any]:
        with self._lock:
            self._begin("split_shard", arguments)
            self.split(arguments["ShardToSplit"], at=int(arguments["NewStartingHashKey"]))
            return self._answer()

    def merge_shards(self, **arguments: Any) -> dict[str, Any]:
        with self._lock:
            self._begin("merge_shards", arguments)
            self.merge(arguments["ShardToMerge"], arguments["AdjacentShardToMerge"])
            return self._answer()

    # Inside.

    def _taken(self, record: Mapping[str, Any]) -> dict[str, str]:
        shard = self._shard_for(hash_of(record["PartitionKey"]))
        return {"ShardId": shard.name, "SequenceNumber": str(self.put(record["Data"], key=record["PartitionKey"]))}

    def _records(self, shard: FakeShard, place: int, limit: int) -> dict[str, Any]:
        if place < 0:
            behind = self.retention_hours * 3_600_000
            return self._answer(
                Records=[], MillisBehindLatest=behind, NextShardIterator=self._new_iterator(shard, place)
            )
        if self.empty_answers.get(shard.name, 0) and place < len(shard.records):
            self.empty_answers[shard.name] -= 1
            again = self._new_iterator(shard, place)
            return self._answer(Records=[], MillisBehindLatest=self._behind(shard, place), NextShardIterator=again)
        place = max(place, self._horizon_place(shard))
        taken = up_to(shard.records[place : place + limit], MAX_ANSWER_BYTES)
        size, after = sum(len(record.data) for record in taken), place + len(taken)
        if self.throttle_after_bytes is not None and size >= self.throttle_after_bytes:
            self._throttled[shard.name] = 2
        answer = self._answer(
            Records=[
                {
                    "SequenceNumber": str(record.sequence),
                    "ApproximateArrivalTimestamp": record.arrival,
                    "PartitionKey": record.key,
                    "Data": record.data,
                }
                for record in taken
            ],
            MillisBehindLatest=self._behind(shard, after),
        )
        if shard.closed is None or after < len(shard.records):
            answer["NextShardIterator"] = self._new_iterator(shard, after)
        return answer

    def _behind(self, shard: FakeShard, place: int) -> int:
        if place >= len(shard.records):
            # At the end of a closed shard the number is anything.
            return 0 if shard.closed is None else 777_000
        return max(1, (self.clock.now() - shard.records[place].arrival) // timedelta(milliseconds=1))

    def _first_place(self, shard: FakeShard, arguments: Mapping[str, Any]) -> int:
        kind, horizon = arguments["ShardIteratorType"], self._horizon_place(shard)
        match kind:
            case "TRIM_HORIZON":
                return horizon
            case "LATEST":
                return len(shard.records)
            case "AT_TIMESTAMP":
                moment = arguments["Timestamp"]
                if moment > self.server_now():
                    raise error_of(INVALID, "The timestampInMillis parameter cannot be in the future")
                return max(horizon, bisect.bisect_left([record.arrival for record in shard.records], moment))
        number = int(arguments["StartingSequenceNumber"])
        if not shard.first_number <= number < shard.first_number + SHARD_DIGITS:
            raise error_of(INVALID, f"Invalid StartingSequenceNumber {number} for {shard.name}")
        numbers = [record.sequence for record in shard.records]
        find = bisect.bisect_left if kind == "AT_SEQUENCE_NUMBER" else bisect.bisect_right
        place = find(numbers, number)
        if bisect.bisect_left(numbers, number) >= horizon:
            return place
        match self.trimmed_as:
            case "stuck":
                return -1
            case "refused":
                raise error_of(INVALID, f"StartingSequenceNumber {number} is trimmed")
        return max(place, horizon)

    def _horizon_place(self, shard: FakeShard) -> int:
        if not self.trims:
            return 0
        return bisect.bisect_left([record.arrival for record in shard.records], self._horizon())

    def server_now(self) -> datetime:
        """By the service's own clock."""
        return self.clock.now() + self.server_ahead

    def set_retention(self, hours: int) -> None:
        """To lower it trims at once; to raise it brings nothing back."""
        self._trimmed_to = self._horizon()
        self.retention_hours = hours
        self._trimmed_to = self._horizon()

    def _horizon(self) -> datetime:
        return max(self._trimmed_to, self.clock.now() - timedelta(hours=self.retention_hours))

    def _is_expired(self, shard: FakeShard) -> bool:
        return self.trims and shard.closed is not None and shard.closed < self._horizon()

    def _filtered(self, wanted: Mapping[str, Any] | None) -> list[FakeShard]:
        kept = [shard for shard in self.shards.values() if not self._is_expired(shard)]
        match wanted and wanted["Type"]:
            case "FROM_TIMESTAMP":
                moment = wanted["Timestamp"]  # type: ignore[index]
                return [shard for shard in kept if shard.closed is None or shard.closed >= moment]
            case "AT_TRIM_HORIZON":
                return [shard for shard in kept if shard.created <= self._horizon()]
        return kept

    def _new_iterator(self, shard: FakeShard, place: int) -> str:
        self._iterators.append((shard.name, place, self.clock.monotonic_s()))
        return f"iterator-{len(self._iterators) - 1}"

    def _begin(self, method: str, arguments: dict[str, Any]) -> None:
        self.calls.append((method, arguments))
        for trouble in self.troubles:
            if trouble.method == method and trouble.where.items() <= arguments.items() and trouble.times:
                if trouble.after:
                    trouble.after -= 1
                    continue
                trouble.times -= 1
                raise error_of(trouble.code, "scripted")

    def _check_name(self, arguments: Mapping[str, Any], doing: str) -> None:
        if arguments.get("StreamName", self.stream) != self.stream:
            raise error_of(NOT_FOUND, f"Stream {arguments['StreamName']} not found ({doing})")

    def _answer(self, **parts: Any) -> dict[str, Any]:
        date = format_datetime(self.server_now().replace(microsecond=0), usegmt=True)
        return {**parts, "ResponseMetadata": {"HTTPStatusCode": 200, "HTTPHeaders": {"date": date}}}

    def _add(self, start: int, end: int, parents: tuple[str, ...]) -> str:
        shard = FakeShard(len(self.shards), start, end, self.clock.now(), parents)
        self.shards[shard.name] = shard
        return shard.name

    def _close(self, shard: FakeShard) -> None:
        shard.closed = self.clock.now()

    def _shard_for(self, hashed: int) -> FakeShard:
        return next(
            shard
            for shard in self.shards.values()
            if shard.closed is None and shard.hash_start <= hashed <= shard.hash_end
        )
