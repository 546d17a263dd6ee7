"""What is to be done for a job after its record has changed."""

from __future__ import annotations

from dataclasses import dataclass

from lading.jobs.tasks import TaskRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Go on with batches at once, planned at this scale. Open the job if it is not open like that. Harmless when
    repeated."""

    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Wait so long, then try again: the same task, or a new one when this one has ended."""

    task_id: int
    attempt: int
    scale: float
    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Wait for the interval of the source: it had less than a batch may have."""

    is_drained: bool = False
    """It had nothing at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo:
    """Close the job without a goodbye, so that the next start asks the table what is so, and fences. Harmless when
    repeated."""

    is_retry: bool = False
    """The open task is not lost: its next attempt opens the job again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Stop working for the job: cut off a batch that runs, settle its commit, say goodbye. Harmless when repeated.

    A commit that is under way may still land. So an open task ends with BatchCancelled, BatchCommitted or
    BatchFailed, and not before; a statement that paused the job waits for that.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveTask:
    """The task changed; keep it in the same step as the record."""

    task: TaskRecord


Action = Run | Retry | Rest | LetGo | Halt | SaveTask
