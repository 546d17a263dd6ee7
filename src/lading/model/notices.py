"""What a job tells others: partitions of its table that are complete, and the notices about them.

All of it is in the bill, so that a restart knows what is still to be told, and how long a partition has been idle. The
bill has only what is open or pending, and the names of the partitions that were done last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class NoticeKey:
    """What makes a notice this one: the same again is a repetition of it."""

    listener: str
    partition: str
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPartition:
    """A partition that rows were committed to since it was last done."""

    rows: int
    """Since then."""
    seq: int
    """The newest commit that wrote to it."""
    written_at: datetime
    """When that was: from here on it is idle."""
    folder: str
    """Where its files are, relative to the table."""
    ends_us: int | None = None
    """When its time is over, for jobs that go by the watermark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A partition is done, and one listener has not been told yet."""

    listener: str
    partition: str
    """`dt=2026-01-01/hh=03`; empty for a table without partitions."""
    seq: int
    """The commit that it speaks of: the newest one that wrote to the partition."""
    rows: int
    """Rows that came since the listener was last told of it."""
    folder: str
    marked_at: datetime
    is_again: bool = False
    """The partition was done before, and rows came later."""

    @property
    def key(self) -> NoticeKey:
        return NoticeKey(listener=self.listener, partition=self.partition, seq=self.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """What is told, as it is after one commit."""

    open: Mapping[str, OpenPartition] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    done: tuple[str, ...] = ()
    """Partitions that were done last, the newest at the end. Rows for others are not called late."""
    marked: int = 0
    """How often a partition was done, in the life of the job."""
    late_rows: int = 0
    """Rows that came to a partition after it was done."""
    untracked: int = 0
    """Partitions that nobody will be told of: too many were open, or their values are no time."""

    @property
    def summary(self) -> ListeningSummary:
        return ListeningSummary(
            open=len(self.open),
            pending=len(self.notices),
            marked=self.marked,
            late_rows=self.late_rows,
            untracked=self.untracked,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningSummary:
    """The same in numbers, for those who look at a job."""

    open: int = 0
    pending: int = 0
    marked: int = 0
    late_rows: int = 0
    untracked: int = 0
    failures: tuple[ListenerFailure, ...] = ()
    """Listeners that could not be told when they were last tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerFailure:
    """A listener that could not be told."""

    listener: str
    tries: int
    """In a row."""
    error: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """One field by which a table is partitioned, and how staged files write its values."""

    name: str
    form: str = "text"
    """text, or date (2026-01-01), as it is; json for a value in JSON; days or micros since 1970; the numbers of Iceberg
    for year, month, day and hour, counted from 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTime:
    """How texts of partition columns become a time."""

    pattern: str = ""
    """`$dt $hh:00:00`. Empty: the table is partitioned by a time."""
    form: str = ""
    """What it looks like then, for strptime."""
    interval_us: int = 0
    """How long a partition is."""
    zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenRule:
    """When a partition of a job is done, and who is told."""

    listeners: tuple[str, ...]
    fields: tuple[PartitionField, ...] = ()
    """By which the table is partitioned. None: it is one partition."""
    idle_s: float = 0.0
    """After so long without a commit to it a partition is done. 0: after each commit."""
    time: PartitionTime | None = None
    """Set: the watermark must have passed its end besides."""
    hold_us: int | None = None
    """For jobs that write results: these come one batch after the watermark that they wait for, and so much later."""
