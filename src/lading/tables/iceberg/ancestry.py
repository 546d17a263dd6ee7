"""Whether the rows of a head are still part of the table, when the snapshots that would tell have expired.

The snapshots of a table tell it as long as they are kept; see `heads.py`. Somebody may roll the table back, commit on
top of that, and expire everything in between. Then the older metadata files tell: each commit names the file of the
state before it, and every new snapshot had its parent in that state. So from the newest state that still knows the
head's snapshot, or one before it, each snapshot is sorted by its parent, state by state, up to the current one.

What stays unseen: states that the table no longer names or whose files are gone. An engine keeps as many as
`write.metadata.previous-versions-max` says, 100 without it: that many commits of others since the job last looked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata

from lading.tables.iceberg.heads import Anchor

_MOST_REMEMBERED = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What one metadata file says of the line of snapshots."""

    current: int | None
    snapshots: tuple[tuple[int, int | None, int], ...]
    """Snapshot, its parent, its sequence number."""


@dataclass(slots=True)
class Line:
    """Snapshots that are known to come after a head, or not to."""

    after: set[int] = field(default_factory=set)
    beside: set[int] = field(default_factory=set)

    def knows(self, snapshot_id: int | None) -> bool | None:
        """Whether a snapshot comes after the head. None: nobody can tell."""
        if snapshot_id in self.after:
            return True
        return False if snapshot_id in self.beside or snapshot_id is None else None


class OlderStates:
    """Metadata files that were read: they never change."""

    def __init__(self) -> None:
        self._read: dict[str, State | None] = {}

    def is_astray(self, metadata: TableMetadata, io: FileIO, anchor: Anchor) -> bool:
        """Whether the table was rolled back behind a head, as far as anything tells it."""
        line = Line()
        now = state_of(metadata)
        sort_snapshots(now, anchor, line)
        known = line.knows(now.current)
        if known is None:
            known = self._told_by_older(self._back(metadata, io), now, anchor)
        return known is False

    def _told_by_older(self, older: Iterator[State], now: State, anchor: Anchor) -> bool | None:
        behind = [now]
        for state in older:
            line = Line()
            sort_snapshots(state, anchor, line)
            if line.knows(state.current) is not None:
                for later in reversed(behind):
                    sort_snapshots(later, anchor, line)
                return line.knows(now.current)
            behind.append(state)
        return None

    def _back(self, metadata: TableMetadata, io: FileIO) -> Iterator[State]:
        """The states before the current one, newest first, as far as their files are there."""
        for entry in reversed(metadata.metadata_log):
            path = entry.metadata_file
            if path not in self._read:
                while len(self._read) >= _MOST_REMEMBERED:
                    self._read.pop(next(iter(self._read)))
                self._read[path] = _read_state(io, path)
            state = self._read[path]
            if state is None:
                return
            yield state


def _read_state(io: FileIO, path: str) -> State | None:
    try:
        return state_of(FromInputFile.table_metadata(io.new_input(path)))
    except (FileNotFoundError, ValidationError, ValueError):
        return None  # Cleaned up, or of a form that is not known: what it said is not known either.


def state_of(metadata: TableMetadata) -> State:
    """The line of snapshots in these metadata."""
    return State(
        current=metadata.current_snapshot_id,
        snapshots=tuple(
            (each.snapshot_id, each.parent_snapshot_id, each.sequence_number or 0) for each in metadata.snapshots
        ),
    )


def sort_snapshots(state: State, anchor: Anchor, line: Line) -> None:
    """Sort the snapshots of a state. A parent's sequence number is lower than its child's, so they come after it."""
    for snapshot_id, parent, number in sorted(state.snapshots, key=lambda each: each[2]):
        if snapshot_id == anchor.snapshot_id or parent == anchor.snapshot_id or parent in line.after:
            line.after.add(snapshot_id)
        elif number <= anchor.sequence_number or parent in line.beside:
            # Older than the head, or on top of one that is. One without a parent replaced the whole table on purpose.
            line.beside.add(snapshot_id)
