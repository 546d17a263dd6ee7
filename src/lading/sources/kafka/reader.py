"""The executors' side: the records of ranges as Arrow batches, then the end of each."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lading.clock import Clock, SystemClock
from lading.model.batch import Split
from lading.model.rows import SplitEnd
from lading.sources.hidden import HIDDEN
from lading.sources.kafka.epochs import epoch_marks
from lading.sources.kafka.errors import read_failed, replaced_while_reading
from lading.sources.kafka.fetcher import Fetcher, Run
from lading.sources.kafka.listing import Cluster
from lading.sources.kafka.payload import Payload, parse_payload
from lading.sources.kafka.spec import KafkaSpec
from lading.sources.records.parser import RecordBlock, RecordParser

if TYPE_CHECKING:
    from confluent_kafka import Message

_BLOCK_ROWS = 16 * 1024
_BLOCK_BYTES = 8 * 1024 * 1024
_SMALL_ROWS = 4096
"""Ranges up to this are read side by side: changing over from one to the next costs more than reading it."""
_WAVE_ROWS = 64 * 1024
_AHEAD_BYTES = 32 * 1024 * 1024
"""What may wait in memory of ranges whose turn has not come."""


def output_schema(spec: KafkaSpec) -> pa.Schema:
    """What batches look like: source columns, metadata columns, hidden columns."""
    columns = [pa.field(name, pa.string()) for name in spec.format.columns]
    return pa.schema([*columns, *spec.metadata_schema, *HIDDEN])


def read_splits(
    spec: KafkaSpec, splits: Sequence[Split], *, clock: Clock | None = None
) -> Iterator[pa.RecordBatch | SplitEnd]:
    """For each split in turn every row, good or bad, in batches; then one SplitEnd.

    A range that is cut by the limits of its split on bytes or seconds ends after the last record that was yielded.
    Raises TrimmedError, SourceError or StageError; the rows before it must be thrown away then. Memory is
    bounded by the queue of the client, one block, and what may wait of other ranges.
    """
    if not splits:
        return
    fetcher = Fetcher(spec)
    try:
        yield from _Reading(spec, splits, fetcher, clock or SystemClock()).items()
    finally:
        fetcher.close()


class _Reading:
    def __init__(self, spec: KafkaSpec, splits: Sequence[Split], fetcher: Fetcher, clock: Clock) -> None:
        self._spec = spec
        self._fetcher = fetcher
        self._clock = clock
        self._parser = RecordParser(spec.format, spec.metadata_schema)
        self._payloads = [parse_payload(split.payload) for split in splits]
        self._poison = {int(split.partition): split.poison for split in splits}
        wants_messages = not set(spec.metadata) <= {"_partition", "_offset"}
        self._runs = [_run(*pair, wants_messages) for pair in zip(splits, self._payloads, strict=True)]
        self._until_s = clock.monotonic_s() + max(split.limits.seconds for split in splits)

    def items(self) -> Iterator[pa.RecordBatch | SplitEnd]:
        left = len(self._runs)
        for wave in _waves(self._runs):
            self._fetcher.assign(wave)
            for place, run in enumerate(wave):
                end = yield from self._read(run, wave[place + 1 :], left)
                left -= 1
                if not left:
                    self._check_topic()
                yield end

    def _read(self, run: Run, later: Sequence[Run], left: int) -> Generator[pa.RecordBatch, None, SplitEnd]:
        """The rows of one run. Each gets its part of the time that is left, and gives what it does not need."""
        now = self._clock.monotonic_s()
        until_s = now + max(0.0, self._until_s - now) / left
        rows, moved_s, moved_at = 0, now, run.at
        while True:
            if run.closed or len(run.values) >= _BLOCK_ROWS or run.waiting_bytes >= _BLOCK_BYTES:
                for batch in self._parse(run):
                    rows += batch.num_rows
                    yield batch
                if run.closed:
                    break
            now = self._clock.monotonic_s()
            if run.at > moved_at:
                moved_s, moved_at = now, run.at
            if now >= until_s and run.at > run.start:
                run.closed = True
                continue
            if now - moved_s > self._spec.patience_s:
                raise self._stuck(run)
            self._keep_fetching(run, later)
            self._fetcher.pull()
        marks = epoch_marks(run.leader_epoch)
        return SplitEnd(
            end=str(run.at),
            rows=rows,
            skipped=run.skipped,
            received_bytes=run.size,
            marks=marks,
            fields=self._parser.fields(),
        )

    def _keep_fetching(self, run: Run, later: Sequence[Run]) -> None:
        is_too_much = sum(other.waiting_bytes for other in later) > _AHEAD_BYTES
        if not self._fetcher.is_fetching(run) or (is_too_much and any(map(self._fetcher.is_fetching, later))):
            self._fetcher.assign([run])

    def _parse(self, run: Run) -> Iterator[pa.RecordBatch]:
        values, offsets, messages = run.take()
        if values:
            place = f"{self._spec.topic}/{run.number}"
            meta = {name: _metadata(name, run.number, offsets, messages) for name in self._spec.metadata}
            before, block = self._parser.without_rows, RecordBlock(values, place, offsets, meta)
            poison = self._poison.get(run.number)
            yield from self._parser.pass_over(block, poison) if poison else self._parser.parse(block)
            run.skipped += self._parser.without_rows - before

    def _stuck(self, run: Run) -> Exception:
        what = f"nothing came for {self._spec.patience_s:g} seconds, and the range goes on to {run.end}"
        return read_failed(self._spec.topic, run.number, run.at, self._fetcher.explain(what))

    def _check_topic(self) -> None:
        """Ids are never used again: a topic that has its id after the last record had it at all of them."""
        wanted = {payload.incarnation for payload in self._payloads} - {""}
        if not wanted:
            return
        now = Cluster(self._spec, self._clock, timeout_s=self._spec.patience_s).topic().incarnation
        for was in wanted - {now}:
            raise replaced_while_reading(self._spec.topic, was, now)


def _run(split: Split, payload: Payload, keeps_messages: bool) -> Run:
    return Run(
        number=int(split.partition),
        start=payload.first,
        end=payload.first if split.end is None else int(split.end),
        max_bytes=split.limits.size_bytes,
        keeps_messages=keeps_messages,
        leader_epoch=payload.leader_epoch,
    )


def _waves(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Neighbours that are small go together; a large one goes alone."""
    wave: list[Run] = []
    for run in runs:
        together = sum(other.end - other.start for other in (*wave, run))
        if wave and (run.end - run.start > _SMALL_ROWS or together > _WAVE_ROWS):
            yield wave
            wave = []
        wave.append(run)
        if run.end - run.start > _SMALL_ROWS:
            yield wave
            wave = []
    if wave:
        yield wave


def _metadata(name: str, partition: int, offsets: Sequence[int], messages: Sequence[Message]) -> Sequence[Any]:
    if name == "_partition":
        return [partition] * len(offsets)
    if name == "_offset":
        return offsets
    if name == "_key":
        return [_text_or_none(message.key()) for message in messages]
    if name == "_timestamp":
        return [_micros_or_none(message.timestamp()) for message in messages]
    return [_headers_or_none(message.headers()) for message in messages]


def _text_or_none(value: bytes | str | None) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _micros_or_none(told: tuple[int, int]) -> int | None:
    kind, millis = told
    return millis * 1000 if kind else None


def _headers_or_none(headers: Any) -> str | None:
    """An object of JSON. A name that comes several times has an array."""
    if not headers:
        return None
    shown: dict[str, Any] = {}
    counts: dict[str, int] = {}
    for name, value in headers.items() if isinstance(headers, Mapping) else headers:
        text = _text_or_none(value)
        counts[name] = counts.get(name, 0) + 1
        shown[name] = text if counts[name] == 1 else [*([shown[name]] if counts[name] == 2 else shown[name]), text]
    return json.dumps(shown, ensure_ascii=False)
