"""The executors' side: the records of splits as Arrow batches, then the end of each."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from lading.clock import Clock, SystemClock
from lading.model.batch import Split
from lading.model.rows import SplitEnd
from lading.sources.kinesis.client import Client, open_client
from lading.sources.kinesis.fetcher import ShardFetch
from lading.sources.kinesis.payload import parse_payload
from lading.sources.kinesis.position import HORIZON, Kind, Position, at_sequence, parse_position
from lading.sources.kinesis.spec import KinesisSpec
from lading.sources.kinesis.split_reader import Taking
from lading.sources.records.parser import RecordParser
from lading.sources.records.spec import RecordFormat

SIDE_BY_SIDE = 4
"""Shards of one task that are fetched at once. Each holds at most 18 MiB."""


def output_schema(spec: KinesisSpec) -> pa.Schema:
    """What batches look like: source columns, wanted metadata columns, hidden columns."""
    return RecordParser(spec.format, spec.meta_schema).schema


def read_splits(
    spec: KinesisSpec, splits: Sequence[Split], *, client: Client | None = None, clock: Clock | None = None
) -> Generator[pa.RecordBatch | SplitEnd, None, None]:
    """For each split in turn its batches, then exactly one SplitEnd.

    Several shards are fetched side by side while one is handed on. The seconds of a batch are those of the task: each
    split gets an equal part of what is left when its turn comes, and what was fetched for it before is not lost.
    Raises StageError and others; the rows before it must be thrown away then: no SplitEnd, no split.
    """
    with closing(_Task(spec, splits, client or _client_of(spec), clock or SystemClock())) as task:
        yield from task.read()


class _Task:
    """The splits of one task."""

    def __init__(self, spec: KinesisSpec, splits: Sequence[Split], client: Client, clock: Clock) -> None:
        self._spec, self._splits, self._client, self._clock = spec, splits, client, clock
        self._parser = RecordParser(spec.format, spec.meta_schema)
        self._fetches: list[ShardFetch] = []
        self._end_s = clock.monotonic_s() + min((split.limits.seconds for split in splits), default=0.0)

    def read(self) -> Iterator[pa.RecordBatch | SplitEnd]:
        for number, split in enumerate(self._splits):
            self._start_some(number + SIDE_BY_SIDE)
            fetch = self._fetches[number]
            now_s = self._clock.monotonic_s()
            fetch.deadline_s = now_s + max(0.0, self._end_s - now_s) / (len(self._splits) - number)
            taking = Taking(self._spec, split, self._parser)
            for page in fetch.pages():
                yield from taking.take(page)
                if taking.is_full:
                    break
            fetch.stop()
            yield from taking.flush()
            yield taking.end()

    def close(self) -> None:
        """Also when the rows are no longer wanted."""
        for fetch in self._fetches:
            fetch.stop()
        for fetch in self._fetches:
            fetch.join()

    def _start_some(self, count: int) -> None:
        for split in self._splits[len(self._fetches) : count]:
            fetch = ShardFetch(
                self._spec,
                self._client,
                self._clock,
                shard=split.partition,
                start=_first_place(split),
                limit=split.limits.rows,
                deadline_s=self._end_s,
            )
            self._fetches.append(fetch)
            fetch.start()


def _first_place(split: Split) -> Position:
    """Where fetching begins: one record earlier, when it must be checked that it is still there."""
    position, payload = parse_position(split.start), parse_payload(split.payload)
    if payload.from_oldest:
        return HORIZON
    if position.kind is Kind.AFTER and payload.verify:
        return at_sequence(position.sequence)
    return position


def _client_of(spec: KinesisSpec) -> Client:
    """A client takes a tenth of a second to make; a Spark worker reads many splits."""
    return _shared_client(
        replace(spec, format=RecordFormat(columns=()), shards=(), meta=()),
    )


@lru_cache(maxsize=8)
def _shared_client(spec: KinesisSpec) -> Client:
    return open_client(spec)
