"""The home folder: everything of one installation in one place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where things are kept."""

    path: Path

    @property
    def store_url(self) -> str:
        return str(self.path / "lading.db")

    @property
    def warehouse(self) -> Path:
        return self.path / "warehouse"

    @property
    def spark(self) -> Path:
        return self.path / "spark"

    @property
    def audit(self) -> Path:
        return self.path / "audit"

    def quarantine(self, job_id: str) -> str:
        """Where bad rows of a job go."""
        return str(self.path / "quarantine" / job_id)
