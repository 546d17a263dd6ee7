"""What is planned, what came back: splits and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lading.model.joined import JoinedTable
from lading.model.positions import Positions
from lading.model.tally import RowCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one batch: they bound memory and the work that a crash can cost."""

    rows: int = 20_000_000
    size_bytes: int = 1_073_741_824
    files: int = 256
    seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The part of a batch that is read in one piece, from one partition."""

    number: int
    """0, 1, 2, … within the batch. Splits of one partition stand in reading order."""
    partition: str
    start: str
    end: str | None = None
    """Where reading must stop, when that is known before reading."""
    may_end_early: bool = False
    """The reader may stop before `end`, where a limit on bytes or seconds cuts it. Else it reads all of the range."""
    limits: Limits = Limits()
    payload: str = ""
    """What the source wants to tell its reader; nobody else looks into it."""
    least: str = ""
    """Set when no less can be read of its partition: what it is, in words, such as `offset 17` or a file."""
    is_record: bool = False
    """It is one record, or of one file, which its reader can put into quarantine without looking at what is in it."""
    poison: str = ""
    """What it reads is not looked at: it goes to quarantine, for this reason."""
    poison_at: tuple[int, ...] = ()
    """Of a file, only the rows that start at these bytes are not looked at; all others are loaded."""
    is_checked: bool = False
    """It is looked at, from its beginning to its end, and goes to quarantine only when that fails for what is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPlace:
    """Where the least stands that can be read of a partition: a record of a stream, or a file."""

    partition: str
    at: str
    """The position whose next record it is."""
    words: str = ""
    """The same for people."""
    is_record: bool = False
    """It can go to quarantine by its position."""
    inside: tuple[int, ...] = ()
    """Of a file, the rows that start at these bytes are meant, and not the whole of it. The last was found last."""

    def __str__(self) -> str:
        row = f", the row at byte {self.inside[-1]}" if self.inside else ""
        return f"partition {self.partition}, {self.words}{row}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonRecord:
    """A record that ended every worker that read it, and is not read again. Or a file that could not be read."""

    place: RecordPlace
    reason: str
    is_checked: bool = False
    """It is read once more, alone, and is put aside only when it cannot be read then either."""


GONE = "gone"
"""The end of a gap that took the rest of a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Rows that the source no longer had. The user chose to go on, so they are written down."""

    partition: str
    start: str
    end: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """The splits that will be committed together, and the positions they start from."""

    positions: Positions
    splits: tuple[Split, ...]
    gaps: tuple[Gap, ...] = ()
    joined: tuple[JoinedTable, ...] = ()
    """What the bill before says of tables that rows are joined with."""
    latest_us: int | None = None
    """Rows of later event times are loaded, and do not move the watermark. None: all do."""
    seq: int = 0
    """Of the commit that it becomes, if it becomes one."""
    planned_at: datetime | None = None
    """As its bill has it."""

    @property
    def least(self) -> RecordPlace | None:
        """The one thing that it reads, when it cannot be made smaller."""
        first = self.splits[0] if self.splits else None
        if (
            first is None
            or not first.least
            or any((split.partition, split.least) != (first.partition, first.least) for split in self.splits)
        ):
            return None
        return RecordPlace(
            partition=first.partition,
            at=first.start,
            words=first.least,
            is_record=all(split.is_record for split in self.splits),
            inside=first.poison_at,
        )

    @property
    def passes_over(self) -> bool:
        """Whether it puts into quarantine what ended workers."""
        return any(split.poison for split in self.splits)

    @property
    def rows_passed_over(self) -> int:
        """So many rows of a file are put into quarantine, and the others are loaded. 0: all of it is, or nothing."""
        return len(self.splits[0].poison_at) if self.splits else 0

    def facts(self, limits: Limits) -> dict[str, Any]:
        """Which part of the rows that the limits allow it was planned with (1 where that is not known), and `least`."""
        fill = min(1.0, sum(split.limits.rows for split in self.splits) / max(1, limits.rows)) or 1.0
        return {"fill": fill, "least": self.least}


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A data file that was written and is not yet part of the table."""

    path: str
    """Where it is: relative to the table's location, with `/`."""
    rows: int
    size_bytes: int
    partition: Mapping[str, str | None] = field(default_factory=dict)
    stats: str = ""
    """Column statistics in the form of the table format; opaque to everybody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """One file of what a job keeps, or of rows on their way to it. Not part of the table."""

    path: str
    """Relative to the table."""
    rows: int
    size_bytes: int
    digest: str
    """SHA-256 of its content."""
    buckets: int
    """The key buckets that it has rows of: bit n for bucket n."""
    min_us: int
    """The smallest and the largest time of its rows: when what they are about ends, or began."""
    max_us: int
    of_rows: int = 0
    """Its rows are sums of so many rows of the source. 0: they are not sums."""
    side: int = 0
    """For joins of two streams: which of them its rows are of, 0 or 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one accepted attempt at one split did."""

    split: int
    partition: str
    start: str
    end: str
    """Next to read after the rows that were handed to the writer; not after those fetched."""
    finished: bool = False
    files: tuple[StagedFile, ...] = ()
    spool: tuple[StateFile, ...] = ()
    """For jobs with state: the rows that it handed on, in order, to be merged with the state."""
    rows: RowCounts = RowCounts()
    received_bytes: int = 0
    source_files: int = 0
    source_bytes: int = 0
    lag_ms: int | None = None
    event_us: int | None = None
    """The largest event time of the rows that it loaded, without those that are too far ahead of the clock."""
    ahead: int = 0
    """How many are too far ahead."""
    marks: Mapping[str, str] = field(default_factory=dict)
    quarantine: tuple[str, ...] = ()
    """Where the bad rows of this split were put."""
    first_error: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Columns that the table lacks for what was read, or has in too narrow a type: see `SplitEnd.fields`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """From a position to a position in one partition, as it was read."""

    partition: str
    start: str
    end: str
