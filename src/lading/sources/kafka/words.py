"""Offsets in the words of SQL: for SHOW, and for a statement that goes on from there."""

from __future__ import annotations

from lading.model.positions import BEGINNING, PartitionState, Positions
from lading.sources.starts import OFFSET_BEGINNING, PARTITION_END


def progress(positions: Positions) -> dict[str, str]:
    """The last offset that was read, as Doris counts; words where none was."""
    return {name: _last_offset(positions.partitions[name].at) for name in sorted(positions.partitions, key=by_number)}


def _last_offset(at: str) -> str:
    if at == BEGINNING:
        return OFFSET_BEGINNING
    return str(int(at) - 1) if int(at) > 0 else "OFFSET_ZERO"


def by_number(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (0, name)


def words(positions: Positions) -> dict[str, str]:
    """For kafka_partitions and kafka_offsets: the next offset to read. Those that were given up stand among them."""
    return {name: _word(positions.partitions[name]) for name in sorted(positions.partitions, key=by_number)}


def _word(state: PartitionState) -> str:
    return PARTITION_END if state.finished else state.at or OFFSET_BEGINNING
