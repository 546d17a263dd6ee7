"""What an edit of positions would do, before anybody does it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from lading.errors import ConfigError, PartitionLostError
from lading.model.positions import BEGINNING, PartitionState, Positions
from lading.service.compile.positions import is_horizon
from lading.service.compile.streams import Stream
from lading.sources.files.source import FileCount, FilesSource, Survey
from lading.sql.properties.starts import OFFSET_BEGINNING

Direction = Literal["BACK", "FORWARD", "SAME", "GIVEN UP", "NEW SOURCE", "UNKNOWN"]
_NUMBER = re.compile(r"(AT|AFTER) (\d+)(?: (\d+))?")


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
        raise PartitionLostError(msg, left="Nothing was changed.", todo=f"It reads: {known}.", partitions=unknown)


def plan_stream_moves(
    stream: Stream, positions: Positions, moves: Mapping[str, str | None]
) -> tuple[PartitionMove, ...]:
    """Moves of a routine load, by the words of SQL."""
    check_partitions(positions, moves)
    wanted = {name: at for name, at in moves.items() if at is not None}
    resolved: dict[str, str | None] = dict.fromkeys(moves)
    if wanted:
        resolved |= stream.resolve(wanted)
    plan = _plan_offsets if stream.lag_unit == "records" else _plan_numbers
    return tuple(plan(stream, name, positions.partitions[name], resolved[name]) for name in moves)


def _plan_offsets(stream: Stream, name: str, state: PartitionState, end: str | None) -> PartitionMove:
    if end is None:
        return _given_up(name, state, "records")
    old = int(state.at if state.at != BEGINNING else stream.resolve({name: OFFSET_BEGINNING})[name] or 0)
    difference = int(end) - old
    return PartitionMove(
        partition=name,
        start=str(old),
        end=end,
        direction=_direction(difference),
        again=max(0, -difference),
        skipped=max(0, difference),
        unit="records",
        remark="offsets without a record are counted too" if difference else "",
    )


def _plan_numbers(stream: Stream, name: str, state: PartitionState, end: str | None) -> PartitionMove:
    if end is None:
        return _given_up(name, state, "records")
    if state.at == end and not state.finished:
        return PartitionMove(partition=name, start=state.at, end=end, direction="SAME", again=0, skipped=0)
    direction = _way_of_numbers(state.at, end)
    return PartitionMove(
        partition=name,
        start=state.at,
        end=end,
        direction="BACK" if state.finished else direction,
        again=0 if direction in ("FORWARD", "SAME") and not state.finished else None,
        skipped=0 if direction in ("BACK", "SAME") else None,
        unit="records",
        remark="Kinesis does not count the records between two positions",
    )


def _rank(position: re.Match[str]) -> int:
    """AT 5, inside 5, AFTER 5, AT 6: numbers that grow like the positions."""
    inside = 10**9 if position[1] == "AFTER" else int(position[3] or 0)
    return int(position[2]) * (10**9 + 1) + inside


def way_between(old: PartitionState, new: PartitionState, *, is_file: bool) -> Direction:
    """Whether one position lies before another. Names of files are ordered as texts; offsets and numbers as numbers."""
    if old.finished != new.finished:
        return "BACK" if old.finished else "FORWARD"
    if old.at == new.at:
        return "SAME"
    if is_file or BEGINNING in (old.at, new.at):
        return "BACK" if new.at < old.at else "FORWARD"
    if old.at.isdecimal() and new.at.isdecimal():
        return _direction(int(new.at) - int(old.at))
    return _way_of_numbers(old.at, new.at)


def _way_of_numbers(start: str, end: str) -> Direction:
    old, new = _NUMBER.fullmatch(start), _NUMBER.fullmatch(end)
    if old and new:
        return _direction(_rank(new) - _rank(old))
    if is_horizon(start) and is_horizon(end):
        return "SAME"
    if old and is_horizon(end):
        return "BACK"
    return "FORWARD" if new and is_horizon(start) else "UNKNOWN"


def _given_up(name: str, state: PartitionState, unit: str) -> PartitionMove:
    remark = "nothing more of this partition is read"
    return PartitionMove(
        partition=name, start=state.at, end=None, direction="GIVEN UP", again=0, unit=unit, remark=remark
    )


def plan_given_up(positions: Positions, names: Collection[str]) -> tuple[PartitionMove, ...]:
    """Partitions that are not read any longer because only others were named."""
    return tuple(_given_up(name, positions.partitions[name], "records") for name in names)


def _direction(difference: int) -> Direction:
    return "SAME" if difference == 0 else "FORWARD" if difference > 0 else "BACK"


def plan_new_source(positions: Positions, opened: Positions) -> tuple[PartitionMove, ...]:
    """Another topic or stream: everything that was known ends, and begins anew."""
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


def _to_load(survey: Survey) -> FileCount:
    """Files that will be loaded, those that are still being written included."""
    pending, unsettled = survey.pending, survey.unsettled
    return FileCount(files=pending.files + unsettled.files, size_bytes=pending.size_bytes + unsettled.size_bytes)


def plan_file_moves(source: FilesSource, positions: Positions, key: str, remark: str = "") -> tuple[PartitionMove, ...]:
    """A move of a file job. Lists the prefix: files between the two names are counted."""
    if len(positions.partitions) != 1:
        msg = "A job that loads files has one position"
        raise ConfigError(msg, left="Nothing was changed.")
    name, state = next(iter(positions.partitions.items()))
    low, high = sorted((state.at, key))
    files, size = 0, 0
    if low != high:
        after_low, after_high = (
            source.survey(replace(positions, partitions={name: PartitionState(at=at)})) for at in (low, high)
        )
        files = _to_load(after_low).files - _to_load(after_high).files
        size = _to_load(after_low).size_bytes - _to_load(after_high).size_bytes
    is_back = key < state.at
    return (
        PartitionMove(
            partition=name,
            start=state.at,
            end=key,
            direction="SAME" if key == state.at else "BACK" if is_back else "FORWARD",
            again=files if is_back else 0,
            again_bytes=size if is_back else 0,
            skipped=0 if is_back else files,
            skipped_bytes=0 if is_back else size,
            unit="files",
            remark=remark,
        ),
    )
