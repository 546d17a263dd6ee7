"""Positions of streams in the words of SQL: for SHOW, and for a statement that goes on from there."""

from __future__ import annotations

import re

from lading.model.positions import BEGINNING, PartitionState, Positions
from lading.sql.properties.starts import OFFSET_BEGINNING, PARTITION_END, SHARD_END, TRIM_HORIZON

_KINESIS = re.compile(r"(AT|AFTER) (\d+)( \d+)?")
_TIME = "TIME "


def kafka_progress(positions: Positions) -> dict[str, str]:
    """The last offset that was read, as Doris counts; words where none was."""
    return {name: _last_offset(positions.partitions[name].at) for name in sorted(positions.partitions, key=_number)}


def _last_offset(at: str) -> str:
    if at == BEGINNING:
        return OFFSET_BEGINNING
    return str(int(at) - 1) if int(at) > 0 else "OFFSET_ZERO"


def _number(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (0, name)


def kafka_words(positions: Positions) -> dict[str, str]:
    """For kafka_partitions and kafka_offsets: the next offset to read. Those that were given up stand among them."""
    return {name: _kafka_word(positions.partitions[name]) for name in sorted(positions.partitions, key=_number)}


def _kafka_word(state: PartitionState) -> str:
    return PARTITION_END if state.finished else state.at or OFFSET_BEGINNING


def kinesis_progress(positions: Positions) -> dict[str, str]:
    """The last number that was read of each shard that is not finished; words where none was."""
    return {name: _last_number(state.at) for name, state in sorted(positions.partitions.items()) if not state.finished}


def _last_number(at: str) -> str:
    match = _KINESIS.fullmatch(at)
    return match[2] if match else _word(at)


def _word(at: str) -> str:
    if at.startswith(_TIME):
        return f"AT_TIMESTAMP({at.removeprefix(_TIME)})"
    return TRIM_HORIZON if is_horizon(at) else at


def is_horizon(at: str) -> bool:
    """Whether a position in a shard is its oldest record, with or without the moment when that was said."""
    return at == BEGINNING or at.split(" ")[0] == TRIM_HORIZON


def kinesis_words(positions: Positions) -> dict[str, str]:
    """For kinesis_shards and kinesis_shards_pos. Finished shards stand among them, so that they are not read again."""
    return {name: _kinesis_word(state) for name, state in sorted(positions.partitions.items())}


def _kinesis_word(state: PartitionState) -> str:
    if state.finished:
        return SHARD_END
    return state.at if _KINESIS.fullmatch(state.at) else _word(state.at)
