"""Whether the rows of a head are still part of the table, when the snapshots that would tell have expired.

The snapshots of a table tell it as long as they are kept; see `heads.py`. Somebody may roll the table back, commit on
top of that, and expire everything in between. Then the older metadata files tell: each commit names the file of the
state before it, and every new snapshot had its parent in that state. So from the newest state that still knows the
head's snapshot, or one before it, each snapshot is sorted by its parent, state by state, up to the current one.

They tell as well which commit of a job a table that was rolled back ends with (`end_of`). A snapshot without a parent
is the first of its table, or somebody put it in the place of the whole table, or its parent has expired: PyIceberg
takes the name of an expired snapshot out of its children. So it counts as the first one only where it is seen how it
came. Otherwise nobody knows what was before, and a job that believed there was nothing would load everything twice.

What stays unseen: states that the table no longer names or whose files are gone. An engine keeps as many as
`write.metadata.previous-versions-max` says, 100 without it: that many commits of others since the job last looked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata

from lading.errors import HeadLostError
from lading.ids import JobId
from lading.model.bill import Head
from lading.tables.iceberg.heads import Anchor, commit_of, find_anchor

_MOST_REMEMBERED = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What one metadata file says of the line of snapshots."""

    current: int | None
    snapshots: tuple[tuple[int, int | None, int], ...]
    """Snapshot, its parent, its sequence number."""
    commits: Mapping[int, tuple[str, Head]] = field(default_factory=dict)
    """Snapshots of Lading: the job and its commit."""


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

    def end_of(self, metadata: TableMetadata, io: FileIO, job_id: JobId) -> Head | None:
        """The newest commit of a job among the current snapshot and its ancestors; None when there is none.

        Raises HeadLostError when nothing is left that tells.
        """
        way = WayBack(state_of(metadata), find_anchor(metadata, job_id), job_id)
        older = self._back(metadata, io)
        while not way.is_over:
            if (state := next(older, None)) is None:
                msg = f"What would tell which commit of job {job_id} the table was rolled back to has expired"
                todo = "Keep the position, and move it with ALTER if need be."
                raise HeadLostError(msg, left="Nothing was changed.", todo=todo)
            way.learn(state)
        return way.found

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


class WayBack:
    """From the current snapshot to its ancestors, as far as the states that were learned tell them."""

    def __init__(self, now: State, anchor: Anchor | None, job_id: JobId) -> None:
        self._anchor, self._job_id = anchor, job_id
        self._known: dict[int, tuple[int | None, int]] = {}
        """Parent and sequence number, by the state nearest to when the snapshot was made."""
        self._commits: dict[int, tuple[str, Head]] = {}
        self._first: set[int] = set()
        """Snapshots that certainly had no parent."""
        self._at, self._newer = now.current, now
        self.found: Head | None = None
        self.is_over = False
        self._take(now)

    def learn(self, older: State) -> None:
        """The state before the one that was learned last."""
        had, has = ({each[0]: each[1] for each in state.snapshots} for state in (older, self._newer))
        # What took the place of a table leaves its snapshots alone; an expiry does not.
        nothing_expired = older.current is None or older.current in has
        self._first |= {each for each, parent in has.items() if each not in had and parent is None and nothing_expired}
        self._take(older)
        self._newer = older

    def _take(self, state: State) -> None:
        for snapshot_id, parent, number in state.snapshots:
            if self._known.get(snapshot_id, (None, 0))[0] is None:
                self._known[snapshot_id] = (parent, number)
        self._commits |= state.commits
        self._go()

    def _go(self) -> None:
        while self._at is not None:
            if self._at not in self._known:
                return
            job_id, head = self._commits.get(self._at, ("", None))
            if job_id == self._job_id:
                self.found, self.is_over = head, True
                return
            if self._anchor is not None and self._anchor.snapshot_id == self._at:
                self.found, self.is_over = self._anchor.head, True
                return
            parent, number = self._known[self._at]
            # Before the first number were only snapshots of format version 1, which Lading does not write.
            if parent is None and number > 1 and self._at not in self._first:
                return
            self._at = parent
        self.is_over = True


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
        commits={each.snapshot_id: told for each in metadata.snapshots if (told := commit_of(each)) is not None},
    )


def sort_snapshots(state: State, anchor: Anchor, line: Line) -> None:
    """Sort the snapshots of a state. A parent's sequence number is lower than its child's, so they come after it."""
    for snapshot_id, parent, number in sorted(state.snapshots, key=lambda each: each[2]):
        if snapshot_id == anchor.snapshot_id or parent == anchor.snapshot_id or parent in line.after:
            line.after.add(snapshot_id)
        elif number <= anchor.sequence_number or parent in line.beside:
            # Older than the head, or on top of one that is. One without a parent replaced the whole table on purpose.
            line.beside.add(snapshot_id)
