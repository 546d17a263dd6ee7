"""Looking into a shard from the driver: is there anything after a position, and how old is it?"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lading.clock import Clock
from lading.errors import StageError
from lading.sources.kinesis.client import Client, call, server_date_or_none
from lading.sources.kinesis.errors import EXPIRED_ITERATOR, INVALID, NOT_FOUND, Foreign, code_of, translated
from lading.sources.kinesis.position import HORIZON, Position, at_sequence, parse_position, render_position
from lading.sources.kinesis.spec import KinesisSpec

ITERATOR_LIFE_S = 240.0
"""Iterators live 300 s."""
MAX_EMPTY_ANSWERS = 5
_THREADS = 8
_MAX_TRIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Peek:
    """What stands after a position."""

    sequence: int | None = None
    """Of the first record there. None: none was found."""
    arrival: datetime | None = None
    behind_ms: int | None = None
    ended: bool = False
    """The shard has an end and it was reached."""
    refused: bool = False
    """The service does not take this position."""
    gone: bool = False
    """The service does not know this shard."""
    asked_at: datetime
    """Before the service was asked."""

    @property
    def is_caught_up(self) -> bool:
        """Nothing was unread when the service was asked."""
        return self.sequence is None and self.behind_ms == 0 and not (self.ended or self.refused or self.gone)


class Scout:
    """Peeks, and remembers iterators, so that an idle shard costs one call a round and a long empty stretch is crossed
    once. What it remembers is lost with the process; it saves calls and decides nothing."""

    def __init__(self, spec: KinesisSpec, client: Client, clock: Clock) -> None:
        self._spec, self._client, self._clock = spec, client, clock
        self._iterators: dict[tuple[str, str], tuple[str, float]] = {}
        self._last: dict[tuple[str, str], tuple[Peek, float]] = {}

    def peek_all(self, positions: Mapping[str, str], *, max_age_s: float = 0.0) -> dict[str, Peek]:
        """Side by side. Answers that are younger than `max_age_s` are used again."""
        if not positions:
            return {}
        with ThreadPoolExecutor(min(_THREADS, len(positions)), thread_name_prefix="lading-scout") as pool:
            found = pool.map(lambda item: self._recent(item, max_age_s) or self.peek(*item), positions.items())
            return dict(zip(positions, found, strict=True))

    def peek(self, shard: str, at: str) -> Peek:
        """What stands after a position. Empty answers are followed a little way. A shard that has no capacity for it
        gives a peek that knows nothing: it has to be read to find out."""
        asked_at = self._clock.now()
        try:
            peek = self._peek(shard, at)
        except StageError:
            peek = Peek(asked_at=asked_at)
        self._last[shard, at] = peek, self._clock.monotonic_s()
        return peek

    def peek_oldest(self, shard: str) -> Peek:
        """The oldest record that is kept."""
        return self._peek(shard, HORIZON.kind.value)

    def peek_record(self, shard: str, number: int) -> Peek:
        """The record with a number; another one, or none, when that is gone. Knows nothing when the shard is busy."""
        at, asked_at = render_position(at_sequence(number)), self._clock.now()
        self._iterators.pop((shard, at), None)
        try:
            return self._peek(shard, at)
        except StageError:
            return Peek(asked_at=asked_at)
        finally:
            self._iterators.pop((shard, at), None)

    def try_position(self, shard: str, at: str) -> Peek:
        """Only whether the service takes a position."""
        asked_at = self._clock.now()
        iterator = self._new_iterator(shard, parse_position(at))
        return iterator if isinstance(iterator, Peek) else Peek(asked_at=asked_at)

    def forget_all_but(self, positions: Mapping[str, str]) -> None:
        """Keep memory as small as the stream."""
        kept = set(positions.items())
        for memory in (self._iterators, self._last):
            for key in [key for key in memory if key not in kept]:
                del memory[key]

    def read_to_tip(
        self, shard: str, position: Position, *, max_calls: int
    ) -> tuple[int | None, datetime | None, bool]:
        """Number and arrival of the newest record after a position, and whether the shard ended there."""
        try:
            return self._read_to_tip(shard, position, max_calls)
        except Foreign as error:
            raise translated(error, self._spec.stream, f"looking into {shard}") from error

    def _read_to_tip(self, shard: str, position: Position, max_calls: int) -> tuple[int | None, datetime | None, bool]:
        newest, arrival = None, None
        iterator: Any = self._new_iterator(shard, position)
        if isinstance(iterator, Peek):
            return None, None, False
        for _ in range(max_calls):
            answer = self._get(iterator, self._spec.max_records)
            if answer["Records"]:
                newest = int(answer["Records"][-1]["SequenceNumber"])
                arrival = answer["Records"][-1]["ApproximateArrivalTimestamp"]
            iterator = answer.get("NextShardIterator")
            if iterator is None:
                return newest, arrival, True
            if answer.get("MillisBehindLatest") == 0 and not answer["Records"]:
                break
        return newest, arrival, False

    def _recent(self, key: tuple[str, str], max_age_s: float) -> Peek | None:
        peek, at = self._last.get(key, (None, 0.0))
        return peek if peek and self._clock.monotonic_s() - at < max_age_s else None

    def _peek(self, shard: str, at: str) -> Peek:
        asked_at = self._clock.now()
        for tries in range(1, _MAX_TRIES + 1):
            try:
                return self._follow(shard, at, asked_at)
            except Foreign as error:
                self._iterators.pop((shard, at), None)
                if code_of(error) == NOT_FOUND:
                    return Peek(gone=True, asked_at=asked_at)
                if code_of(error) != EXPIRED_ITERATOR or tries == _MAX_TRIES:
                    raise translated(error, self._spec.stream, f"looking into {shard}") from error
        raise AssertionError

    def _follow(self, shard: str, at: str, asked_at: datetime) -> Peek:
        iterator, made = self._iterators.pop((shard, at), (None, 0.0))
        if iterator is None or self._clock.monotonic_s() - made > ITERATOR_LIFE_S:
            fresh = self._new_iterator(shard, parse_position(at))
            if isinstance(fresh, Peek):
                return fresh
            iterator = fresh
        behind: int | None = None
        for _ in range(MAX_EMPTY_ANSWERS):
            answer = self._get(iterator, 1)
            behind, iterator = answer.get("MillisBehindLatest"), answer.get("NextShardIterator")
            asked_at = min(asked_at, server_date_or_none(answer) or asked_at)
            if answer["Records"]:
                record = answer["Records"][0]
                return Peek(
                    sequence=int(record["SequenceNumber"]),
                    arrival=record.get("ApproximateArrivalTimestamp"),
                    behind_ms=behind,
                    asked_at=asked_at,
                )
            if iterator is None:
                return Peek(ended=True, behind_ms=behind, asked_at=asked_at)
            self._iterators[shard, at] = iterator, self._clock.monotonic_s()
            if behind == 0:
                break
        return Peek(behind_ms=behind, asked_at=asked_at)

    def _get(self, iterator: str, limit: int) -> dict[str, Any]:
        arn = {"StreamARN": self._spec.stream_arn} if self._spec.stream_arn else {}
        arguments = {"ShardIterator": iterator, "Limit": limit, **arn}
        return call(self._spec.stream, self._clock, self._client.get_records, max_tries=_MAX_TRIES, **arguments)

    def _new_iterator(self, shard: str, position: Position) -> str | Peek:
        asked_at = self._clock.now()
        arguments = {**self._spec.target, "ShardId": shard, **position.iterator_arguments()}
        try:
            return str(
                call(self._spec.stream, self._clock, self._client.get_shard_iterator, **arguments)["ShardIterator"]
            )
        except Foreign as error:
            match code_of(error):
                case code if code == INVALID:
                    return Peek(refused=True, asked_at=asked_at)
                case code if code == NOT_FOUND:
                    return Peek(gone=True, asked_at=asked_at)
            raise translated(error, self._spec.stream, f"looking into {shard}") from error
