"""What the coordinator needs of the rest of the world. Each protocol states its laws."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from lading.ids import JobId, Token
from lading.model.batch import BatchPlan, Limits, Report, StagedFile
from lading.model.bill import Bill, Head
from lading.model.joined import JoinedTable
from lading.model.notices import ListenerFailure, Notice, NoticeKey
from lading.model.outcome import Outcome
from lading.model.positions import Positions
from lading.model.state import StateChange, StateRef


class Table(Protocol):
    """The driver's side of a table.

    Laws: `read_head` asks the table itself, never a cache. `commit` adds the files and moves the head from exactly
    `expected` to the bill's head, both or neither; it says NotLanded only when this attempt can never land, and
    Unknown whenever the answer was lost. It may try again by itself only after it has looked at the head again.
    Anything it raises means: this attempt was refused before anything was written. It raises RolledBackError when
    the table was rolled back behind the head, unless the bill accepts that and nobody put it back once more since.
    """

    def read_head(self, job_id: JobId) -> Head | None:
        """The head as the table has it now. Raises RolledBackError when the table was rolled back behind it."""
        ...

    def read_head_unchecked(self, job_id: JobId) -> Head | None:
        """The same without the check, for the operator who accepts a rollback."""
        ...

    def commit(self, expected: Head | None, staged: Sequence[StagedFile], bill: Bill) -> Outcome:
        """One atomic commit: files and head."""
        ...

    def find(self, job_id: JobId, token: Token) -> bool:
        """Whether a commit with this token is part of the table's history, as far back as that is kept.

        At least as fresh as any head that was read before.
        """
        ...

    def version(self) -> int | None:
        """The version that was last seen, where the format has one."""
        ...

    def repair(self, job_id: JobId, seen: Head) -> str:
        """Put commits up to `seen` back that another writer took away without rolling the table back, where a format
        has such writers. What was done, in words; empty: nothing. The head tells what could not be put back."""
        ...

    def is_watched(self) -> bool:
        """Whether a commit is so young that such a writer may still take it away. Then `repair` is worth a call."""
        ...

    def discard(self, staged: Sequence[StagedFile]) -> None:
        """Delete staged files. Called only when they can never become part of the table."""
        ...


class Bills(Protocol):
    """The bills beside the table: immutable, put-if-absent, durable when `put` returns."""

    def put(self, bill: Bill) -> None:
        """Write a bill. The same bill again is fine; another one under its name is refused."""
        ...

    def read(self, job_id: JobId, head: Head) -> Bill:
        """The bill a head names. Raises HeadLostError when it is gone."""
        ...

    def heads(self, job_id: JobId) -> list[Head]:
        """All bills there are, landed or not, lowest seq first."""
        ...


class Planner(Protocol):
    """Chooses what to read."""

    def open(self, start: str) -> Positions:
        """Concrete positions for the opening bill."""
        ...

    def take_in(self, base: Positions) -> Positions:
        """The base and every partition that is new in the source."""
        ...

    def plan(self, base: Positions, limits: Limits) -> BatchPlan:
        """Splits of the next batch."""
        ...


class Stager(Protocol):
    """Runs one Spark job: reads the splits, writes data files, returns one report per split.

    Law: only reports of accepted attempts; file names that no other attempt can have.
    """

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        """Stage a batch. Raises when any split could not be read and written."""
        ...


class Merger(Protocol):
    """Merges what a batch read with what the job keeps.

    Laws: it is called with accepted reports only, and reads from their spool, not from the source. It writes files
    under names that no other attempt can have, and changes none. When it returns, the state that it names is durable
    and whole. The same spool and the same state give the same rows.
    """

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        """What becomes of the rows, and the state after them."""
        ...


class Joins(Protocol):
    """The tables that a job joins its rows with.

    Law: the same snapshot has the same rows for ever, or cannot be read.
    """

    def newest(self) -> tuple[JoinedTable, ...]:
        """Their snapshots of now. Raises when a table is gone, or when the owner of the job may not read it."""
        ...

    def can_read(self, joined: Sequence[JoinedTable]) -> bool:
        """Whether everything of these snapshots is still there."""
        ...


class Follower(Protocol):
    """Something derived from bills: an index, statistics, an acknowledgement to the source.

    Law: following the same bill twice, or an older one after a newer one, changes nothing.
    """

    def followed_seq(self, job_id: JobId) -> int | None:
        """The newest bill it has followed."""
        ...

    def follow(self, bill: Bill) -> None:
        """Take a bill in."""
        ...


class Listeners(Protocol):
    """Those who are told that partitions are done.

    Laws: told after the commit that a notice speaks of, at least once: after a crash the same notice may come again,
    and changes nothing then. They never raise, and take a bounded time. Whether they can be told has no part in what
    is loaded.
    """

    @property
    def failures(self) -> tuple[ListenerFailure, ...]:
        """Those that could not be told when they were last tried."""
        ...

    def is_due(self, notices: Sequence[Notice]) -> bool:
        """Whether some of these can be told now: one that failed is left alone for a while."""
        ...

    def tell(self, bill: Bill, notices: Sequence[Notice]) -> Collection[NoticeKey]:
        """Tell what is pending after a bill. Those that were taken."""
        ...
