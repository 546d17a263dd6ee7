"""Tasks: what `tasks()` remembers of the batches of a job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from lading.ids import JobId
from lading.model.tally import Tally

KEPT_TASKS = 100
"""How many tasks of a job are remembered."""


class TaskState(Enum):
    """As Doris spells them."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELED = "CANCELED"

    @property
    def is_final(self) -> bool:
        return self not in (TaskState.PENDING, TaskState.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One batch from its start to its end, with all its attempts."""

    task_id: int
    """1, 2, 3, … in the life of the job."""
    job_id: JobId
    job_name: str
    state: TaskState = TaskState.RUNNING
    attempt: int = 1
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: str = ""
    """Why the last attempt failed."""
    first_error: str = ""
    """Why the first attempt failed, or what was wrong with the first bad row."""
    tally: Tally | None = None
    """What its commit counted; None when nothing was committed."""
    user: str = ""
    running_offset: str = ""

    @property
    def label(self) -> str:
        return f"{self.job_id}_{self.task_id}"
