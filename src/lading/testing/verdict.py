"""What can be wrong with a table, by name."""

from __future__ import annotations

from dataclasses import dataclass, field

LOSS = "LOSS"
DUP = "DUP"
REORDER = "REORDER"
CORRUPT = "CORRUPT"
PROGRESS_MISMATCH = "PROGRESS-MISMATCH"
STUCK = "STUCK"
STOPPED = "STOPPED"
"""A job stopped for a reason that was not so."""
RUNAWAY = "RUNAWAY"
"""A job ran that was not to: it was paused or fenced, or tried again at once, or as large as what had died twice."""

CLASSES = (LOSS, DUP, REORDER, CORRUPT, PROGRESS_MISMATCH, STUCK, STOPPED, RUNAWAY)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    kind: str
    text: str


@dataclass(slots=True)
class Findings:
    """All that is wrong; empty is good."""

    found: list[Finding] = field(default_factory=list)

    def add(self, kind: str, text: str) -> None:
        self.found.append(Finding(kind, text))

    def expect(self, holds: bool, kind: str, text: str) -> bool:
        if not holds:
            self.add(kind, text)
        return holds

    def count(self, kind: str) -> int:
        return sum(finding.kind == kind for finding in self.found)
