"""Positions in shards in the words of SQL: for SHOW, and for a statement that goes on from there."""

from __future__ import annotations

import re

from lading.model.positions import BEGINNING, PartitionState, Positions
from lading.sources.starts import SHARD_END, TRIM_HORIZON

NUMBER = re.compile(r"(AT|AFTER) (\d+)(?: (\d+))?")
"""A position at, inside or behind a record."""
_TIME = "TIME "


def progress(positions: Positions) -> dict[str, str]:
    """The last number that was read of each shard that is not finished; words where none was."""
    return {name: _last_number(state.at) for name, state in sorted(positions.partitions.items()) if not state.finished}


def _last_number(at: str) -> str:
    match = NUMBER.fullmatch(at)
    return match[2] if match else _word(at)


def _word(at: str) -> str:
    if at.startswith(_TIME):
        return f"AT_TIMESTAMP({at.removeprefix(_TIME)})"
    return TRIM_HORIZON if is_horizon(at) else at


def is_horizon(at: str) -> bool:
    """Whether a position in a shard is its oldest record, with or without the moment when that was said."""
    return at == BEGINNING or at.split(" ")[0] == TRIM_HORIZON


def words(positions: Positions) -> dict[str, str]:
    """For kinesis_shards and kinesis_shards_pos. Finished shards stand among them, so that they are not read again."""
    return {name: _next_word(state) for name, state in sorted(positions.partitions.items())}


def _next_word(state: PartitionState) -> str:
    if state.finished:
        return SHARD_END
    return state.at if NUMBER.fullmatch(state.at) else _word(state.at)
