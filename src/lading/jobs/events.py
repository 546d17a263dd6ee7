"""What can happen to a job, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lading.ids import JobId
from lading.jobs.reasons import Failure, ReasonCode
from lading.jobs.record import JobKind, WindowLimits
from lading.model.batch import RecordPlace
from lading.model.bill import Bill, Head
from lading.model.errors_copied import ErrorsCopied
from lading.model.joined import JoinedTable
from lading.model.load import LoadSpec
from lading.model.notices import ListeningSummary
from lading.model.state import StateRef
from lading.model.tally import Tally


def bill_facts(bill: Bill) -> dict[str, Any]:
    """What a record copies of the newest bill, for the events that bring it."""
    return {
        "head": bill.head,
        "totals": bill.totals,
        "watermark_us": bill.positions.watermark_us,
        "kept": bill.state,
        "joined": bill.joined,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """CREATE JOB or CREATE ROUTINE LOAD."""

    job_id: JobId
    name: str
    database: str
    kind: JobKind
    definition: str
    spec: LoadSpec | None = None
    target: str
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""
    user: str = ""
    window: WindowLimits | None = None
    at: datetime


# What a person does.


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedByUser:
    """PAUSE. Also of a job that would go on by itself: from then on it waits for a person."""

    user: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """RESUME."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """STOP ROUTINE LOAD, DROP JOB."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """ALTER. Properties are merged into the old ones; what is None stays as it is."""

    definition: str | None = None
    spec: LoadSpec | None = None
    """What the definition asks for; goes with it."""
    properties: Mapping[str, str] = field(default_factory=dict)
    is_undo: bool = False
    """Properties are all there are: those that are not among them go."""
    window: WindowLimits | None = None
    secrets_slot: str | None = None
    """Where the secrets of the new definition are kept."""
    moved: Head | None = None
    """The head of the commit that moved the position, when the statement asked for that."""
    current_offset: str | None = None
    watermark_us: int | None = None
    kept: StateRef | None = None
    joined: tuple[JoinedTable, ...] = ()
    """Those of the commit that moved the position."""
    is_said_again: bool = False
    """It is meant also when nothing changes."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackAccepted:
    """ACCEPT ROLLBACK: an operator said that the table was rolled back on purpose. Refused unless the job is PAUSED."""

    head: Head
    totals: Tally
    watermark_us: int | None = None
    kept: StateRef | None = None
    joined: tuple[JoinedTable, ...] = ()
    current_offset: str
    message: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """REPLAY ERRORS: rows of quarantine were taken up again. The commit is in the table, whatever the state is."""

    head: Head
    totals: Tally
    watermark_us: int | None = None
    kept: StateRef | None = None
    joined: tuple[JoinedTable, ...] = ()
    current_offset: str = ""
    at: datetime


# What the incarnation that runs the job reports.


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBegun:
    """It is the job's turn to run a batch, if it may."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The coordinator has started: these are the head and the totals of the table."""

    head: Head
    totals: Tally
    watermark_us: int | None = None
    kept: StateRef | None = None
    joined: tuple[JoinedTable, ...] = ()
    current_offset: str = ""
    is_retry: bool = False
    """The same incarnation opens it again after an error: the open task is not lost, its next attempt follows."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningCommitted:
    """CREATE has committed the opening bill. Nobody works for the job yet, so nobody is left to fence."""

    head: Head
    totals: Tally
    watermark_us: int | None = None
    kept: StateRef | None = None
    joined: tuple[JoinedTable, ...] = ()
    current_offset: str = ""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStarted:
    """A batch was planned and is about to be staged. Refused unless the job is RUNNING."""

    running_offset: str = ""
    """What it is going to read."""
    end_offset: str = ""
    """How far the source was known to reach at that moment; empty where it does not tell."""
    fill: float = 1.0
    """Which part of its limits it has; 1 where that is not known."""
    least: RecordPlace | None = None
    """What it reads, when it cannot be made smaller."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCommitted:
    """The bill of the batch is the head of the table."""

    task_id: int
    head: Head
    tally: Tally
    totals: Tally
    watermark_us: int | None = None
    kept: StateRef | None = None
    joined: tuple[JoinedTable, ...] = ()
    first_bad_row: str = ""
    current_offset: str = ""
    end_offset: str = ""
    running_offset: str = ""
    """What it has read; a later attempt may have been planned differently."""
    was_full: bool = False
    """The batch ended because of its limits, so more is there."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFailed:
    """Nothing was committed. Without a task: the job could not be opened, or no batch could be planned."""

    task_id: int | None
    failure: Failure
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCancelled:
    """The batch was cut off, by PAUSE, STOP or the end of the process. Nothing of it was committed."""

    task_id: int
    is_unsure: bool = False
    """What the incarnation believes of the table may not be so."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToDo:
    """The source was asked and had nothing new."""

    end_offset: str = ""
    remark: str = ""
    """What people should know besides, such as files that came too late."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWaits:
    """The batch that was begun waits for something outside. It is not cut off, and goes on when that is there."""

    message: str
    """What it waits for; empty: it goes on."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenersTold:
    """What became of telling others which partitions are done."""

    listening: ListeningSummary | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRowsCopied:
    """What became of copying bad rows to the errors table."""

    copied: ErrorsCopied | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEvolved:
    """The table got columns that rows of the job need."""

    message: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtUp:
    """A job that loads once has loaded everything there was."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """Another incarnation has committed for this job."""

    message: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """The table was rolled back behind the head."""

    message: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGone:
    """The target table, or its database, does not exist any more."""

    code: ReasonCode = ReasonCode.TABLE_ERR
    message: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodbye:
    """The incarnation ended cleanly at this head: nobody is left to fence."""

    head: Head
    at: datetime


# What the service notices.


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """The process that ran the open task is gone, and nobody will open the job soon (it is paused or final)."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time has passed."""

    at: datetime


Event = (
    TurnBegun
    | PausedByUser
    | Resumed
    | Stopped
    | Altered
    | RollbackAccepted
    | Replayed
    | Opened
    | OpeningCommitted
    | BatchStarted
    | BatchCommitted
    | BatchFailed
    | BatchCancelled
    | NothingToDo
    | BatchWaits
    | ListenersTold
    | BadRowsCopied
    | TableEvolved
    | CaughtUp
    | Fenced
    | RolledBack
    | TargetGone
    | Goodbye
    | Interrupted
    | Tick
)
