"""What readers and listings of streams tell, whichever stream it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnd:
    """The last thing a reader yields of a split."""

    end: str
    """Next to read after the records that were yielded; never after those that were only fetched."""
    finished: bool = False
    """The source itself said that no more records will ever come."""
    rows: int = 0
    """Every row that was yielded, good or bad."""
    skipped: int = 0
    """Records that hold no row (tombstones, empty records): counted as unselected."""
    received_bytes: int = 0
    lag_ms: int | None = None
    marks: Mapping[str, str] = field(default_factory=dict)
    source_files: int = 0
    source_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSight:
    """How far a job is behind its stream, as the stream tells now."""

    lag: Mapping[str, int | None] = field(default_factory=dict)
    """Per partition that is not finished; milliseconds or records, as the stream counts. None: not known."""
    facts: Mapping[str, int] = field(default_factory=dict)
    """Other numbers, by the names that SHOW gives them."""
    seconds_to_trim: float | None = None
    """Until the oldest unread row may be trimmed. None: nothing is unread, or nobody knows."""
    open_partitions: tuple[str, ...] = ()
    closed_partitions: tuple[str, ...] = ()
