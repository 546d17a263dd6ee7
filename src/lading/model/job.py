"""What a job is, as far as its commits are concerned."""

from __future__ import annotations

from dataclasses import dataclass

from lading.ids import JobId
from lading.model.batch import Limits
from lading.model.notices import ListenRule


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBudget:
    """How many bad rows a batch may have and still be committed."""

    max_ratio: float = 1.0
    strict: bool = False
    """Any bad row refuses the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkRule:
    """How the watermark of a job follows from the event times that its partitions have reported."""

    delay_us: int = 0
    """So much later than others a row may come."""
    idle_s: float | None = None
    """After so long without anything to read a partition no longer holds the others back. None: it always does."""
    max_future_us: int | None = None
    """Rows that are further ahead of the clock, when their batch is planned, do not move it. None: all do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One continuous load."""

    job_id: JobId
    name: str
    start: str = "LATEST"
    """Symbolic or concrete start, in the source's own words; used once, for the opening bill."""
    definition: str = ""
    limits: Limits = Limits()
    budget: ErrorBudget = ErrorBudget()
    on_data_loss: str = "PAUSE"
    watermark: WatermarkRule | None = None
    """None: the job has no event time."""
    keeps_state: bool = False
    """It keeps something of its rows between batches, also while nothing can be merged with it."""
    listening: ListenRule | None = None
    """None: nobody is told when its partitions are done."""
