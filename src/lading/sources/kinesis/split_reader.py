"""Handing the records of one split on, and knowing where it ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pyarrow as pa

from lading.errors import StageError
from lading.model.batch import Split
from lading.model.rows import SplitEnd
from lading.sources.kinesis.fetcher import Page
from lading.sources.kinesis.kpl import MAGIC, UserRecord, all_belong, user_records_or_none
from lading.sources.kinesis.payload import parse_payload, render_marks
from lading.sources.kinesis.position import Kind, after_sequence, at_sequence, parse_position, render_position
from lading.sources.kinesis.spec import (
    ARRIVAL,
    PARTITION_KEY,
    SEQUENCE,
    SHARD,
    SUB_SEQUENCE,
    KinesisSpec,
    Kpl,
)
from lading.sources.records.parser import RecordBlock, RecordParser

BLOCK_BYTES, BLOCK_RECORDS = 4 * 1024 * 1024, 16_384
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US, _MS = timedelta(microseconds=1), timedelta(milliseconds=1)


@dataclass(slots=True)
class _Block:
    """Records that wait to be parsed together."""

    values: list[bytes] = field(default_factory=list)
    sequences: list[str] = field(default_factory=list)
    subs: list[int] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    size_bytes: int = 0

    @property
    def is_full(self) -> bool:
        return self.size_bytes >= BLOCK_BYTES or len(self.values) >= BLOCK_RECORDS


class Taking:
    """Takes pages, gives batches, and says at the end what was taken.

    The end stands behind the last record that was taken, and every record that was taken is yielded before the end
    is told. A limit cuts between two records, also inside an aggregate and inside a page.
    """

    def __init__(self, spec: KinesisSpec, split: Split, parser: RecordParser) -> None:
        self._spec, self._split, self._parser = spec, split, parser
        self._payload = parse_payload(split.payload)
        self._start = self._at = parse_position(split.start)
        self._checks_first = self._start.sub > 0 or (self._start.kind is Kind.AFTER and self._payload.verify)
        self._block = _Block()
        self._records = self._rows = self._skipped = self._bytes = 0
        self._arrival: datetime | None = None
        self._current: datetime | None = None
        self._lag_ms: int | None = None
        self._ended = False
        self.is_full = False
        """A limit is reached. Nothing more may be taken."""

    def take(self, page: Page) -> Iterator[pa.RecordBatch]:
        """One page, or its beginning."""
        at = 0
        while at < len(page.records):
            if count := self._count_plain(page.records, at):
                at += count
                yield from self._take_plain(page.records[at - count : at])
                continue
            record = page.records[at]
            at += 1
            yield from self._take_record(record)
            if self.is_full:
                self._lag_ms = max(
                    1, (page.asked_at - record["ApproximateArrivalTimestamp"]) // _MS, page.behind_ms or 0
                )
                self._current = None
                return
        if self._checks_first and (page.ended or page.is_tip):
            raise self._trimmed()
        self._ended = page.ended
        self.is_full = not page.ended and self._is_at_limit()
        self._lag_ms = 0 if page.ended else page.behind_ms
        self._current = page.asked_at if page.behind_ms == 0 else None

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yield what waits."""
        block, self._block = self._block, _Block()
        if not block.values:
            return
        shard = self._split.partition
        meta: dict[str, Any] = {
            SHARD: [shard] * len(block.values),
            SEQUENCE: block.sequences,
            SUB_SEQUENCE: block.subs,
            ARRIVAL: block.arrivals,
            PARTITION_KEY: block.keys,
        }
        places = [f"{shard}:{sequence}" for sequence in block.sequences]
        before = self._parser.without_rows
        records, poison = RecordBlock(block.values, places, block.subs, meta), self._split.poison
        for batch in self._parser.pass_over(records, poison) if poison else self._parser.parse(records):
            self._rows += batch.num_rows
            yield batch
        self._skipped += self._parser.without_rows - before

    def end(self) -> SplitEnd:
        """Only after `flush`."""
        at = self._split.start if self._at == self._start else render_position(self._at)
        return SplitEnd(
            end=at,
            finished=self._ended,
            rows=self._rows,
            skipped=self._skipped,
            received_bytes=self._bytes,
            lag_ms=self._lag_ms,
            fields=self._parser.fields(),
            marks=render_marks(arrival=self._arrival, current=self._current, lag_ms=self._lag_ms),
        )

    def _count_plain(self, records: list[dict[str, Any]], at: int) -> int:
        """How many records from here on have nothing about them: no aggregate, none empty, and no limit among them."""
        if self._checks_first or self._payload.from_oldest:
            return 0
        limits, block = self._split.limits, self._block
        room = min(limits.rows - max(self._records, self._rows), BLOCK_RECORDS - len(block.values))
        room_bytes = min(limits.size_bytes - self._bytes, BLOCK_BYTES - block.size_bytes)
        count = 0
        for record in islice(records, at, at + max(0, room)):
            data = record["Data"]
            room_bytes -= len(data)
            if room_bytes <= 0 or not data or data.startswith(MAGIC):
                break
            count += 1
        return count

    def _take_plain(self, records: list[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        """What `_take_record` does, for many of them."""
        block, last = self._block, records[-1]
        values = [record["Data"] for record in records]
        size = sum(map(len, values))
        block.values += values
        block.sequences += [record["SequenceNumber"] for record in records]
        block.subs += [0] * len(records)
        block.arrivals += [(record["ApproximateArrivalTimestamp"] - _EPOCH) // _US for record in records]
        block.keys += [record["PartitionKey"] for record in records]
        block.size_bytes += size
        self._records += len(records)
        self._bytes += size
        if block.is_full:
            yield from self.flush()
        self._at = after_sequence(int(last["SequenceNumber"]))
        self._arrival = last["ApproximateArrivalTimestamp"]

    def _take_record(self, record: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        sequence, data = int(record["SequenceNumber"]), record["Data"]
        first = 0
        if self._checks_first:
            self._check_first(sequence)
            self._checks_first = False
            if self._start.kind is Kind.AFTER:
                return
            first = self._start.sub
        if self._payload.from_oldest and sequence <= self._start.sequence:
            msg = f"Record {sequence} of {self._split.partition} is still there, and it was taken for trimmed"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")
        users = self._users(record["PartitionKey"], data)
        if first and first >= len(users):
            msg = (
                f"Record {sequence} of {self._split.partition} holds {len(users)} records, and the position is {first}"
            )
            todo = "property.kpl was changed inside an aggregate: change it back, or ALTER the position."
            raise StageError(msg, left="Nothing was committed.", todo=todo)
        if self._is_foreign(users, data):
            self._skipped += len(users)
            users = []
        for sub in range(first, len(users)):
            if self._is_at_limit():
                self.is_full = True
                if sub:
                    self._at = at_sequence(sequence, sub)
                return
            self._add(record, users[sub], sub)
            if self._block.is_full:
                yield from self.flush()
        self._at = after_sequence(sequence)
        self._arrival = record["ApproximateArrivalTimestamp"]

    def _check_first(self, sequence: int) -> None:
        if sequence != self._start.sequence:
            raise self._trimmed()

    def _trimmed(self) -> StageError:
        msg = f"Record {self._start.sequence} of {self._split.partition} was trimmed before the batch was read"
        return StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")

    def _users(self, key: str, data: bytes) -> list[UserRecord]:
        aggregated = None if self._spec.kpl is Kpl.OFF else user_records_or_none(data)
        return [UserRecord(key, None, data)] if aggregated is None else aggregated

    def _is_foreign(self, users: list[UserRecord], data: bytes) -> bool:
        if self._spec.kpl is not Kpl.HASH_RANGE or (len(users) == 1 and users[0].data is data):
            return False
        return not all_belong(users, self._payload.hash_start, self._payload.hash_end)

    def _is_at_limit(self) -> bool:
        limits = self._split.limits
        return max(self._records, self._rows) >= limits.rows or self._bytes >= limits.size_bytes

    def _add(self, record: dict[str, Any], user: UserRecord, sub: int) -> None:
        self._records += 1
        self._bytes += len(user.data)
        self._arrival = record["ApproximateArrivalTimestamp"]
        if not user.data:
            self._skipped += 1
            return
        block = self._block
        block.values.append(user.data)
        block.sequences.append(record["SequenceNumber"])
        block.subs.append(sub)
        block.arrivals.append((record["ApproximateArrivalTimestamp"] - _EPOCH) // _US)
        block.keys.append(user.key)
        block.size_bytes += len(user.data)
