"""What is known of a job apart from its progress. Whatever it says of progress is a copy of a bill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from lading.ids import JobId
from lading.jobs.dialects import DIALECTS, Dialect, dialect_named
from lading.jobs.dialects import JobKind as JobKind
from lading.jobs.dialects import JobState as JobState
from lading.jobs.pace import Pace as Pace
from lading.jobs.reasons import Reason
from lading.jobs.tasks import TaskRecord
from lading.model.bill import Head
from lading.model.errors_copied import ErrorsCopied
from lading.model.joined import JoinedTable
from lading.model.load import LoadSpec
from lading.model.notices import ListeningSummary
from lading.model.state import StateRef
from lading.model.tally import RowCounts, Tally

FINAL_STATES = frozenset({JobState.STOPPED, JobState.FINISHED, JobState.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobName:
    """How a person names a job. Names of streaming jobs are global, those of routine loads belong to a database."""

    kind: JobKind
    name: str
    database: str = ""

    @property
    def live_key(self) -> str:
        """Equal for two jobs that cannot both be alive."""
        place = f"{self.database}/" if DIALECTS[self.kind].has_database else ""
        return f"{self.kind.value}/{place}{self.name}"

    def __str__(self) -> str:
        return DIALECTS[self.kind].full_name(self.name, self.database)


def parse_job_name(text: str) -> JobName:
    """`name` is a streaming job, `database.name` a routine load. Names of jobs have no dots."""
    database, _, name = text.rpartition(".")
    return JobName(kind=dialect_named(text).kind, name=name, database=database)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCounts:
    """Tasks in the life of a job, by their end."""

    begun: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed + self.cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoResume:
    """How often the job was resumed without a person since it last did well, and when that is due again."""

    tries: int = 0
    next_at: datetime | None = None
    """None: at the next tick, or not at all; the reason of the pause decides."""
    resumed_at: datetime | None = None
    """When that was done last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTry:
    """One thing that went wrong, at a batch or before one could be planned."""

    at: datetime
    message: str


KEPT_TRIES = 20
"""How many of them a record keeps."""
MOST_TRY_LETTERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLimits:
    """How many bad rows a routine load may commit before it is paused."""

    max_errors: int = 0
    max_ratio: float = 1.0
    rows: int = 200_000_000
    """After so many rows the count begins again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """Everything the metadata store keeps of one job."""

    job_id: JobId
    name: str
    database: str
    kind: JobKind
    definition: str
    """The SQL text, for people; secrets are left out or stand as references."""
    spec: LoadSpec | None = None
    """What the text asks for. None: it was written by another version and cannot be read."""
    properties: Mapping[str, str] = field(default_factory=dict)
    secrets_slot: str = ""
    """Which of the sealed secrets that the store keeps for the job belong to the definition. Empty: the first."""
    target: str
    """Name of the target table."""
    comment: str = ""
    definer: str = ""
    created_at: datetime
    state: JobState
    reason: Reason | None = None
    """Why it is PAUSED or CANCELLED; None in every other state."""
    paused_at: datetime | None = None
    ended_at: datetime | None = None
    first_error: str = ""
    """The first thing that went wrong since a person last resumed the job."""
    last_error: str = ""
    last_error_at: datetime | None = None
    tries: tuple[FailedTry, ...] = ()
    """What went wrong lately, oldest first: also attempts that were made again."""
    counts: TaskCounts = TaskCounts()
    task: TaskRecord | None = None
    """The task that has not ended yet. It may outlive a PAUSE until its commit is settled."""
    failures: int = 0
    """Tasks that failed in a row."""
    auto_resume: AutoResume = AutoResume()
    pace: Pace = field(default_factory=Pace)
    last_success_at: datetime | None = None
    last_seen: Head | None = None
    """Copy: the newest head. A table that is behind it was rolled back."""
    goodbye: Head | None = None
    """The head at which the last incarnation ended cleanly."""
    totals: Tally | None = None
    """Copy: the totals of the bill `last_seen` names."""
    watermark_us: int | None = None
    """Copy: its watermark."""
    kept: StateRef | None = None
    """Copy: what it keeps between batches."""
    listening: ListeningSummary | None = None
    """What its listeners were told, and whether they can be; None: it has none."""
    errors_copied: ErrorsCopied | None = None
    """How far its bad rows are in its errors table; None: it has none, or has not been run since."""
    joined: tuple[JoinedTable, ...] = ()
    """Copy: the snapshots that its rows are joined with."""
    window: WindowLimits | None = None
    """None for streaming jobs: their budget is checked before the commit."""
    window_base: RowCounts = RowCounts()
    """The totals at which the window began. Counting from totals, a crash cannot make a bad row uncounted."""
    runtime_message: str = ""
    current_offset: str = ""
    end_offset: str = ""

    @property
    def dialect(self) -> Dialect:
        """The words that its statements, rows and errors use."""
        return DIALECTS[self.kind]

    @property
    def full_name(self) -> JobName:
        """With its database, for a routine load."""
        return JobName(kind=self.kind, name=self.name, database=self.database)

    @property
    def is_final(self) -> bool:
        """It has ended for good."""
        return self.state in FINAL_STATES

    @property
    def is_waiting(self) -> bool:
        """It is to be opened."""
        return self.state is self.dialect.waiting

    @property
    def batch_scale(self) -> float:
        """How large its batches are, compared with what its limits allow: less after batches that died."""
        return self.pace.scale

    @property
    def window_rows(self) -> RowCounts:
        """Rows by fate since the window began."""
        return (self.totals.rows if self.totals else self.window_base) - self.window_base


def with_error(record: JobRecord, message: str, at: datetime) -> JobRecord:
    """Remember what is wrong, first and last."""
    return replace(record, first_error=record.first_error or message, last_error=message, last_error_at=at)


def with_try(record: JobRecord, message: str, at: datetime) -> JobRecord:
    """Remember what went wrong, and when: something was tried and failed."""
    tried = FailedTry(at=at, message=message[:MOST_TRY_LETTERS])
    return replace(with_error(record, message, at), tries=(*record.tries, tried)[-KEPT_TRIES:])
