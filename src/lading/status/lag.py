"""How far a job is behind its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum


class LagUnit(Enum):
    """What a source counts its lag in."""

    RECORDS = "records"
    MILLISECONDS = "milliseconds"
    FILES = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """The lag of one job at one moment. Current, never the worst ever; finished partitions are left out."""

    unit: LagUnit
    partitions: Mapping[str, int | None] = field(default_factory=dict)
    """None: the source could not tell."""
    seconds_to_trim: float | None = None
    """Until the oldest unread row may be trimmed. None: nothing is unread, or nobody knows."""
    at: datetime

    @property
    def behind(self) -> int | None:
        """One number for the job: records and files add up, of times the longest counts. None: nobody knows."""
        known = [value for value in self.partitions.values() if value is not None]
        if not known and self.partitions:
            return None
        return max(known, default=0) if self.unit is LagUnit.MILLISECONDS else sum(known)
