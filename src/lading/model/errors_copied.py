"""How far the bad rows of a job are in its errors table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorsCopied:
    """What people are shown of it. Whatever it says of progress is a copy of the head in that table."""

    table: str
    through: int | None = None
    """All commits before this seq are dealt with. None: the table was not asked yet."""
    rows: int = 0
    """So many rows of the job were written into it."""
    behind: int | None = 0
    """So many commits with bad rows are still to be copied. None: that is not known."""
    error: str = ""
    """Why they could not be when that was last tried."""
    tries: int = 0
