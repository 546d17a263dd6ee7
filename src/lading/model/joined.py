"""Tables that a job joins its rows with, each at one snapshot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedTable:
    """What a bill says of a table that the next batch joins its rows with: that batch, repeated, joins the same."""

    table: str
    """`database.table`."""
    incarnation: str
    """Which table of that name it is: one that is made again is another one."""
    snapshot: str
    """In the words of the table format."""
