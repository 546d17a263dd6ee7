"""What listings of streams tell, whichever stream it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
