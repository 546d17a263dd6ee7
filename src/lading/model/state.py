"""What a job keeps between batches: immutable files that a manifest lists, and a bill that names the manifest.

A batch reads the state that the head names and commits rows, positions, watermark and new state together. Files that
no bill names are left over from an attempt that was not committed; nobody reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from lading.model.batch import StagedFile, StateFile


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRef:
    """What a bill says of the state: enough to find it, to know it again, and to show it. It does not grow."""

    manifest: str
    """Where the manifest is, relative to the table."""
    digest: str
    """SHA-256 of its content."""
    files: int
    rows: int
    size_bytes: int
    next_us: int | None = None
    """The earliest moment at which something of it is due. A watermark that has reached it makes a batch, also when
    there is nothing to read. None: nothing is ever due by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateManifest:
    """All files of a job's state as they are after one commit."""

    shape: str = ""
    """What the rows are about, in words: keys, types, windows. State of another shape is that of other rows."""
    files: tuple[StateFile, ...] = ()
    closed_us: int | None = None
    """Windows that end up to here were written. Rows about them may still be in the files and count no more."""


def stamp_of(at: datetime) -> str:
    """How the names of files of state begin: when they were made. What no bill names goes by its age."""
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%S}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """What merging one batch with the state came to."""

    state: StateRef | None
    files: tuple[StagedFile, ...] = ()
    """Data files for the table."""
    duplicates: int = 0
    """Rows that were handed on and are not loaded, because their keys were there before."""
    unselected: int = 0
    """Rows that were handed on and left out: by WHERE, or because nothing matches them."""
    errors: int = 0
    """Rows that were handed on and are bad."""
    quarantine: tuple[str, ...] = ()
    """Where those were put."""
    first_error: str = ""

    @property
    def written(self) -> int:
        """Rows for the table."""
        return sum(file.rows for file in self.files)
