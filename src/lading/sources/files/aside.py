"""Files that an operator has left out, or loaded after all: what that makes of the position of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from lading.errors import SqlError
from lading.model.positions import PartitionState, Positions
from lading.sources.files.glob import compile_glob
from lading.sources.files.offsets import whole_name
from lading.sources.files.place import parse_uri
from lading.sources.files.window import read_window, render_aside, render_window, without_window

SKIP, LOAD = "file.skip", "file.load"
"""What ALTER calls them, which are no properties of a job. SKIP FILE and LOAD FILE are short for these."""
MOST_SKIPPED = 1000
_ANY = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWord:
    """One file that is named."""

    what: str
    name: str


def take_file_word(properties: Mapping[str, str]) -> tuple[FileWord | None, dict[str, str]]:
    """The file that an ALTER names, and the other properties."""
    words = [FileWord(what=what, name=properties[what]) for what in (SKIP, LOAD) if what in properties]
    others = {name: value for name, value in properties.items() if name not in (SKIP, LOAD)}
    if words and (others or len(words) > 1):
        msg = f"{words[0].what} cannot be changed together with other properties"
        raise SqlError(msg, todo="Say one after the other.")
    return (words[0] if words else None), others


def moved_aside(positions: Positions, word: FileWord, uri: str, now: datetime) -> tuple[Positions, str, str]:
    """The positions after it, the key of the file, and what comes of it in words. Raises SqlError where it is wrong."""
    place = parse_uri(uri)
    key = whole_name(word.name.strip(), place)
    if not word.name.strip() or not compile_glob(place.pattern).matches(key):
        msg = f"{key} is not a file of the job: its files are {uri}"
        raise SqlError(msg, todo="Name one of those, as SHOW and ErrorMsg do.")
    (name, state), *_ = positions.partitions.items()
    change = _skipped if word.what == SKIP else _loaded
    moved, told = change(state, key, now)
    return replace(positions, partitions={**positions.partitions, name: moved}), key, told


def _skipped(state: PartitionState, key: str, now: datetime) -> tuple[PartitionState, str]:
    window = read_window(state, now)
    if key in window.skipped:
        msg = f"{key} is left out already"
        raise SqlError(msg, todo="EXPLAIN JOB shows what is.")
    if key in window.keys and key not in window.unread:
        msg = f"{key} was loaded by the job: it is too late to leave it out"
        raise SqlError(msg, todo="Delete its rows with an engine of yours, beside the job: see docs/engines.md.")
    if len(window.skipped) >= MOST_SKIPPED:
        msg = f"{len(window.skipped)} files are left out already"
        raise SqlError(msg, todo="Take such files away, or move the position behind them.")
    after = replace(
        window,
        skipped=(*window.skipped, key),
        unread=tuple(each for each in window.unread if each != key),
        asked=tuple(each for each in window.asked if each != key),
    )
    marks = {**state.marks, **render_aside(after, window)}
    return replace(state, marks=marks), f"{key} is not read by the job from now on; LOAD FILE takes that back"


def _loaded(state: PartitionState, key: str, now: datetime) -> tuple[PartitionState, str]:
    window = read_window(state, now)
    if key not in window.skipped and key not in window.unread:
        msg = f"{key} was neither left out nor put aside"
        raise SqlError(msg, todo='EXPLAIN JOB shows what was. "s3.also_load" loads files by their names.')
    after = replace(
        window,
        keys={each: seen for each, seen in window.keys.items() if each != key},
        skipped=tuple(each for each in window.skipped if each != key),
        unread=tuple(each for each in window.unread if each != key),
        # What sorts behind the position comes by itself.
        asked=(*window.asked, key) if key <= state.at else window.asked,
    )
    keys = render_window(after) if after.keys != window.keys else {}
    marks = {**state.marks, **keys, **render_aside(after, window)}
    told = f"{key} is loaded by one of the next batches"
    is_known = key in window.unread or key in window.keys or key > state.at
    if not is_known and (key <= window.floor or window.horizon_s is not None):
        told += "; if it was loaded before it was left out, its rows come twice: UNDO ALTER JOB takes this back"
    return replace(state, marks=marks, finished=False), told


def repeats_nothing(was: PartitionState, now: PartitionState) -> bool:
    """Whether nothing was done in between but to leave files out, and to have loaded of which nothing was.

    False for a file that was left out and is not remembered: it may have been loaded before that.
    """
    before, after = (replace(state, marks=without_window(state), finished=False) for state in (was, now))
    old, new = read_window(was, _ANY), read_window(now, _ANY)
    unloaded = {*old.unread, *(key for key in old.skipped if key in old.keys)}
    kept = {key: seen for key, seen in old.keys.items() if key in new.keys or key not in unloaded}
    same = replace(old, keys=kept, unread=new.unread, asked=new.asked, skipped=new.skipped)
    return before == after and same == new and {*new.asked} - {*old.asked} <= unloaded and not was.finished


def aside_of(positions: Positions, now: datetime) -> dict[str, tuple[str, ...]]:
    """Files that are left out, and those that were put aside, for people."""
    windows = [read_window(state, now) for state in positions.partitions.values()]
    found = {
        "left out": tuple(key for window in windows for key in window.skipped),
        "put aside": tuple(key for window in windows for key in window.unread),
    }
    return {what: keys for what, keys in found.items() if keys}
