"""What is shown of jobs, the same to HTTP, console and metrics. No record holds a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from lading.model.errors_copied import ErrorsCopied
from lading.model.notices import ListeningSummary
from lading.model.tally import RowCounts, Tally
from lading.status.lag import LagUnit
from lading.status.rates import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class LagView:
    """How far a job is behind its source."""

    unit: LagUnit
    behind: int | None
    """One number for the job; None when the source cannot tell."""
    partitions: Mapping[str, int | None] = field(default_factory=dict)
    seconds_to_trim: float | None = None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """Where a job stands in one partition, according to the head of its table."""

    partition: str
    at: str
    """Next to read; empty for the beginning."""
    finished: bool
    parents: tuple[str, ...] = ()
    event_time: str | None = None
    """The latest of its rows; None for jobs without a watermark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonView:
    """Why a job stands still."""

    code: str
    message: str
    needs_attention: bool


class Health(Enum):
    """How a job is doing, the gravest first."""

    NEEDS_REVIEW = "needs review"
    """It waits for a person to decide."""
    FAILING = "failing"
    """Its last batches failed; it is tried again."""
    LATE_FILES = "late files"
    """It runs, and there are files that it will not load."""
    CATCHING_UP = "catching up"
    """It is more than a minute behind its source."""
    PAUSED = "paused"
    """By a user."""
    HEALTHY = "healthy"
    ENDED = "ended"

    @property
    def rank(self) -> int:
        """0 is what to look at first."""
        return list(Health).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthView:
    """How a job is doing, and since when somebody should look."""

    state: Health
    tries: int = 0
    """What failed in a row."""
    note: str = ""
    next_try_at: datetime | None = None
    """When a job that is paused is tried again without a person; None: at once, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemView:
    """What is wrong with a job, as a task for a person."""

    sentence: str
    value: str = ""
    """The value that cannot be loaded, as the source has it."""
    file: str = ""
    """Where the first bad row is."""
    row: int | None = None
    detail: str
    """All that is known."""
    has_bad_rows: bool = False
    allow: Mapping[str, str] = field(default_factory=dict)
    """Properties that would let such rows pass; empty when rows are not what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsView:
    """Batches in the life of a job, by their end."""

    begun: int
    succeeded: int
    failed: int
    cancelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as it is now."""

    name: str
    """`name` for a streaming job, `database.name` for a routine load: what paths and statements take."""
    job_id: str
    kind: str
    """Which statement made it: `streaming` or `routine`."""
    source: str
    """What it reads, as statements name it: S3, FILE, KAFKA, …; empty when its definition cannot be read."""
    database: str
    target: str
    state: str
    health: HealthView
    problem: ProblemView | None
    """None: nothing is wrong."""
    reason: ReasonView | None
    comment: str
    definer: str
    created_at: datetime
    ended_at: datetime | None
    paused_at: datetime | None
    resumes_at: datetime | None
    """When it goes on without a person, if that is due."""
    lag: LagView | None
    totals: Tally
    has_event_time: bool
    """Its rows have a time that says which are late."""
    watermark: str | None
    """No row with an earlier event time is expected; None: the job has none, or none yet."""
    state_rows: int | None
    """What it keeps between batches; None: nothing."""
    state_bytes: int | None
    state_due: str | None
    """When the next of its open windows is due, in event time; None: no window is open."""
    listening: ListeningSummary | None
    """Partitions that are done or not, and whether listeners can be told; None: the job has no listeners."""
    errors_copied: ErrorsCopied | None
    """How far its bad rows are in its errors table; None: it has none, or has not been run since."""
    rows_per_s: float
    """Over the last minutes."""
    bytes_per_s: float
    last_commit_at: datetime | None
    last_error: str
    last_error_at: datetime | None
    failures_in_a_row: int
    batches: CountsView
    is_busy: bool
    """A batch is on its way."""
    message: str
    """What the running job has to say."""
    current_offset: str
    end_offset: str
    seq: int | None
    """The newest commit; None before the first."""
    service: str
    """The service that runs it, when several share the store; empty when there is one, or none has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail:
    """A job with what only its table knows."""

    job: JobView
    definition: str
    properties: Mapping[str, str]
    epoch: int | None
    positions: tuple[PartitionView, ...]
    positions_fault: str
    """Why the positions are not known: the table could not be read. Empty when they are."""
    open_windows: int | None
    """At most so many windows are open; for sessions, parts of them. None: it has no windows, or it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BillView:
    """One commit."""

    seq: int
    token: str
    """As text: it has more digits than a JavaScript number."""
    epoch: int
    kind: str
    incarnation: str
    planned_at: datetime
    billed_at: datetime
    seconds: float
    tally: Tally
    totals: Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchView:
    """One batch from its start to its end, with all its attempts."""

    batch_id: int
    state: str
    attempt: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    seconds: float | None
    rows: RowCounts | None
    error: str
    first_error: str
    user: str
    running_offset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """A bad row, as it stands in the quarantine."""

    seq: int | None
    """Of the commit that left it out. None: its batch was refused."""
    file: str
    row: int
    reason: str
    raw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GapView:
    """Rows that the source no longer had."""

    seq: int
    partition: str
    start: str
    end: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView:
    """One change that a person asked for."""

    at: datetime
    user: str
    action: str
    subject: str
    statement: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HappenedView:
    """Something that happened to a job, or several commits with nothing between them."""

    at: datetime
    """When it happened; of several, the last."""
    since: datetime
    kind: str
    """`commit`, `failure` of a batch, `retry` (something failed and was tried again), `pause`, `resume` or `edit`."""
    what: str
    """The kind of the commit, the error, or the statement."""
    user: str = ""
    first_seq: int | None = None
    last_seq: int | None = None
    rows: int | None = None
    bad_rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points for plots."""

    start: datetime
    end: datetime
    step_s: float
    lag_unit: LagUnit | None
    points: tuple[Point, ...]
    is_cut: bool
    """There were more commits than were read: the oldest points are too low."""


JsonRecord = dict[str, Any]
"""A bill as its JSON has it."""
