"""A stream, a job that reads it, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from lading.clock import Clock, SystemClock
from lading.commit.check import advance, check_reports
from lading.model.batch import BatchPlan, Limits, Report, Split
from lading.model.positions import PartitionState, Positions
from lading.model.rows import SplitEnd
from lading.model.tally import RowCounts
from lading.plan.planner import Planner
from lading.sources.kinesis.client import Client
from lading.sources.kinesis.payload import Payload, render_payload
from lading.sources.kinesis.reader import read_splits
from lading.sources.kinesis.source import KinesisSource
from lading.sources.kinesis.spec import META, KinesisSpec, Pace
from lading.sources.records.spec import RecordFormat, RecordKind

FORMAT = RecordFormat(kind=RecordKind.JSON, columns=("key", "n"))
QUICK = Pace(calls_per_s=1e6, bytes_per_s=1e12)
BIRTH = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = Limits(rows=1_000_000, seconds=20.0)


def make_spec(**changes: Any) -> KinesisSpec:
    spec = KinesisSpec(
        stream="clicks", region="us-east-1", format=FORMAT, pace=QUICK, meta=tuple(field.name for field in META)
    )
    return replace(spec, **changes)


def row(key: str, n: int, **more: Any) -> bytes:
    return json.dumps({"key": key, "n": n, **more}).encode()


def shard(number: int) -> str:
    return f"shardId-{number:012d}"


def split_of(name: str, start: str, *, limits: Limits = LIMITS, number: int = 0, **payload: Any) -> Split:
    body = Payload(**{"hash_start": 0, "hash_end": 2**128 - 1, **payload})
    return Split(number=number, partition=name, start=start, limits=limits, payload=render_payload(body))


def read_all(spec: KinesisSpec, splits: Sequence[Split], client: Client) -> list[tuple[list[dict[str, Any]], SplitEnd]]:
    """Rows and end of each split, in turn."""
    found: list[tuple[list[dict[str, Any]], SplitEnd]] = []
    rows: list[dict[str, Any]] = []
    for item in read_splits(spec, splits, client=client):
        if isinstance(item, pa.RecordBatch):
            rows += item.to_pylist()
        else:
            found.append((rows, item))
            rows = []
    assert rows == []
    assert [end.rows for _, end in found] == [len(rows) for rows, _ in found]
    return found


def read_one(spec: KinesisSpec, split: Split, client: Client) -> tuple[list[dict[str, Any]], SplitEnd]:
    [found] = read_all(spec, [split], client)
    return found


@dataclass
class Job:
    """Plans, reads and commits, in memory and in one piece. `crash` forgets everything that is not committed."""

    client: Client
    clock: Clock = field(default_factory=SystemClock)
    spec: KinesisSpec = field(default_factory=make_spec)
    limits: Limits = LIMITS
    on_data_loss: str = "PAUSE"
    rows: list[dict[str, Any]] = field(default_factory=list)
    gaps: list[Any] = field(default_factory=list)
    ends: list[tuple[Split, SplitEnd]] = field(default_factory=list)
    positions: Positions = field(default_factory=Positions)

    def __post_init__(self) -> None:
        self.crash()

    def crash(self) -> None:
        self.source = KinesisSource(self.spec, self.clock, self.client)
        self.planner = Planner(self.source, self.clock, on_data_loss=self.on_data_loss)

    def open(self, start: str) -> Positions:
        self.positions = self.planner.open(start)
        return self.positions

    def state(self, number: int) -> PartitionState:
        return self.positions.partitions[shard(number)]

    def plan(self) -> BatchPlan:
        return self.planner.plan(self.positions, self.limits)

    def batch(self) -> int:
        """One batch. How many rows it had; -1 when there was nothing to do."""
        plan = self.plan()
        if not plan.splits and not plan.gaps:
            return -1
        found = read_all(self.spec, plan.splits, self.client)
        reports = [_report(split, end) for split, (_, end) in zip(plan.splits, found, strict=True)]
        self.positions = advance(plan, check_reports(plan, reports))
        self.gaps += plan.gaps
        self.ends += [(split, end) for split, (_, end) in zip(plan.splits, found, strict=True)]
        new = [row for rows, _ in found for row in rows]
        self.rows += new
        return len(new)

    def drain(self, most: int = 200) -> None:
        """Until there is nothing to do."""
        for _ in range(most):
            if self.batch() < 0:
                return
        raise AssertionError("still not done")

    @property
    def numbers(self) -> list[int]:
        return [int(row["n"]) for row in self.rows]


def _report(split: Split, end: SplitEnd) -> Report:
    rows = RowCounts(total=end.rows + end.skipped, unselected=end.rows + end.skipped)
    return Report(
        split=split.number,
        partition=split.partition,
        start=split.start,
        end=end.end,
        finished=end.finished,
        rows=rows,
        received_bytes=end.received_bytes,
        lag_ms=end.lag_ms,
        marks=end.marks,
    )
