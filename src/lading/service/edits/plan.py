"""What an edit of positions would do, before anybody does it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lading.errors import ConfigError
from lading.model.moves import PartitionMove, given_up
from lading.model.positions import Positions
from lading.sources.kind import OpenSource, SourceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class EditPlan:
    """An edit of positions, thought through or done."""

    job: str
    moves: tuple[PartitionMove, ...] = ()
    changed: Mapping[str, tuple[str, str]] | None = None
    """Parts of the definition, before and after. Secrets are masked."""
    is_done: bool = False
    epoch: int | None = None
    """The epoch it raised the job to; None while it is not done."""
    seq: int | None = None
    seen: str = ""
    """Stands for the head and the definition that were looked at. Handed back, the edit is done with these or not."""

    @property
    def changes(self) -> dict[str, str | None]:
        """What the coordinator is told."""
        return {move.partition: move.end for move in self.moves}


def check_partitions(positions: Positions, moves: Mapping[str, object]) -> None:
    """Refuse partitions that the job does not read."""
    unknown = sorted(set(moves) - set(positions.partitions))
    if unknown:
        msg = f"The job does not read partition {', '.join(unknown)}"
        known = ", ".join(sorted(positions.partitions)) or "none"
        raise ConfigError(msg, left="Nothing was changed.", todo=f"It reads: {known}.", partitions=unknown)


def plan_moves(
    kind: SourceKind, opened: OpenSource, positions: Positions, moves: Mapping[str, str | None]
) -> tuple[PartitionMove, ...]:
    """Moves of partitions, by the words of SQL; None gives one up."""
    check_partitions(positions, moves)
    wanted = {name: at for name, at in moves.items() if at is not None}
    resolved: dict[str, str | None] = dict.fromkeys(moves)
    if wanted:
        resolved |= opened.resolve(wanted)
    return tuple(kind.plan_move(opened, name, positions.partitions[name], resolved[name]) for name in moves)


def plan_given_up(positions: Positions, names: Collection[str]) -> tuple[PartitionMove, ...]:
    """Partitions that are not read any longer because only others were named."""
    return tuple(given_up(name, positions.partitions[name], "records") for name in names)


def plan_new_source(positions: Positions, opened: Positions) -> tuple[PartitionMove, ...]:
    """Another topic or stream: everything that was known ends, and begins again."""
    left = [
        PartitionMove(
            partition=name,
            start=state.at,
            end=None,
            direction="NEW SOURCE",
            again=0,
            remark="what is unread here is not loaded",
        )
        for name, state in positions.partitions.items()
        if not state.finished
    ]
    begun = [
        PartitionMove(partition=name, start="", end=state.at, direction="NEW SOURCE", again=0, skipped=0)
        for name, state in opened.partitions.items()
        if not state.finished
    ]
    return (*left, *begun)
