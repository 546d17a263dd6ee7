"""What a job keeps of its rows, and what for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from lading.model.joined import JoinedTable
from lading.pipeline.mapping import RowMapping
from lading.pipeline.remote import RemoteFiles
from lading.pipeline.state.aggregates import Part
from lading.pipeline.state.files import StatePlace
from lading.pipeline.tasks import Quarantine, Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupRule:
    """Rows with the same keys within the horizon are the same: the first is loaded."""

    keys: tuple[str, ...]
    """Columns of the table."""
    horizon_us: int
    time: str
    """The column with the event time."""


RESULT_START, RESULT_END = "window_start", "window_end"
START = "__start"
"""When the window of a partial aggregate begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRule:
    """Rows are added up by windows of time and keys, and results are written when a window has closed."""

    shape: str
    """What is kept, in words."""
    size_us: int
    slide_us: int
    is_session: bool
    """Windows are sessions: they last for as long as rows come less than `size_us` apart."""
    keys: int
    """So many of the first columns of a row are its keys."""
    spool_schema: pa.Schema
    state_schema: pa.Schema
    parts: tuple[Part, ...]
    results: tuple[tuple[str, str], ...]
    """Aggregates over the parts p0, p1, …, each with its type."""
    mapping: RowMapping
    """From results to rows of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRule:
    """Rows are looked up in a table, at the snapshot that the bill before says. Nothing of them is kept."""

    spool_schema: pa.Schema
    source: tuple[str, ...]
    """What the first columns of the spool are called behind the join; where a row is from follows them."""
    table: pa.Schema
    """The columns of the table that are used."""
    names: tuple[str, ...]
    """What those are called behind the join."""
    on: str
    """Spark SQL over both."""
    is_left: bool
    """Rows without a match are loaded, too."""
    mapping: RowMapping
    """From both sides to rows of the table that is loaded into."""
    open: Callable[[JoinedTable, pa.Schema], RemoteFiles]
    """The files of a snapshot, to be read with these columns. Raises when it cannot be read."""
    open_quarantine: Callable[[str], Quarantine]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamJoinRule:
    """Rows of two streams are joined with each other, and kept for as long as one can come that they match."""

    shape: str
    """What is kept, in words."""
    spool_schema: pa.Schema
    """Columns of both streams, keys, and where a row is from. Rows have nothing in those of the other stream."""
    names: tuple[tuple[str, ...], tuple[str, ...]]
    """What the columns of both are called behind the join."""
    types: tuple[tuple[str, ...], tuple[str, ...]]
    """Their types, as Spark has them."""
    keys: int
    low_us: int
    high_us: int
    """How much later than the first the second is, at least and at most."""
    rest: str
    """What else the condition asks for: Spark SQL over both. Empty: nothing."""
    is_left: bool
    """Rows of the first without a match are written, once none can come any more."""
    mapping: RowMapping
    """From both to rows of the table."""
    open_quarantine: Callable[[str], Quarantine]

    @property
    def keeps_us(self) -> tuple[int, int]:
        """For how long rows of both are kept behind the watermark.

        Those of the second outlive every row of the first that they may match, where that has to be known at its end.
        """
        before, after = max(0, -self.low_us), max(0, self.high_us)
        return after, before + (after if self.is_left else 0)


StateRule = DedupRule | WindowRule | JoinRule | StreamJoinRule


@dataclass(frozen=True, slots=True, kw_only=True)
class StateStage:
    """How a job merges its rows with what it keeps."""

    rule: StateRule
    place: StatePlace
    schema: pa.Schema
    """Columns of the table."""
    open_table: Callable[[str], Writer]
    """What writes to the table; the tools of the reading task write to the spool."""
