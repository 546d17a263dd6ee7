"""What moving a position would do, whichever source it is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lading.model.positions import BEGINNING, PartitionState

Direction = Literal["BACK", "FORWARD", "SAME", "GIVEN UP", "NEW SOURCE", "UNKNOWN"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMove:
    """One partition, from where to where."""

    partition: str
    start: str
    """Where it is now: next to read."""
    end: str | None
    """Where it will be. None: nothing more of it is read."""
    direction: Direction
    again: int | None = None
    """Files or records that will be loaded a second time; None when nobody can tell."""
    again_bytes: int | None = None
    skipped: int | None = None
    """Files or records that will not be loaded; None when nobody can tell."""
    skipped_bytes: int | None = None
    unit: str = ""
    """files or records."""
    remark: str = ""


def direction_of(difference: int) -> Direction:
    """The direction of a number that grows as rows are read."""
    return "SAME" if difference == 0 else "FORWARD" if difference > 0 else "BACK"


def given_up(name: str, state: PartitionState, unit: str) -> PartitionMove:
    """A partition of which nothing more is read."""
    remark = "nothing more of this partition is read"
    return PartitionMove(
        partition=name, start=state.at, end=None, direction="GIVEN UP", again=0, unit=unit, remark=remark
    )


def plain_way(old: PartitionState, new: PartitionState) -> Direction | None:
    """The direction where it needs no knowledge of the source; None where it does."""
    if old.finished != new.finished:
        return "BACK" if old.finished else "FORWARD"
    if old.at == new.at:
        return "SAME"
    if BEGINNING in (old.at, new.at):
        return "BACK" if new.at == BEGINNING else "FORWARD"
    return None
