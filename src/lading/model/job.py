"""What a job is, as far as its commits are concerned."""

from __future__ import annotations

from dataclasses import dataclass

from lading.ids import JobId
from lading.model.batch import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBudget:
    """How many bad rows a batch may have and still be committed."""

    max_ratio: float = 1.0
    strict: bool = False
    """Any bad row refuses the batch."""


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
