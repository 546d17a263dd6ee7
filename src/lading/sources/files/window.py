"""Which files were loaded: what makes files exact that come in any order.

Remembered are the keys of the files that were loaded last, each with its modification time and a digest of its etag, up
to a number. A listed file is, in this order:

    known       its key is remembered (and `changed`, when its etag is not the one that was loaded)
    fresh       its key sorts after the position: no such key was ever loaded
    forgotten   its key is at or below the floor, or it was not modified after the horizon: it may have been loaded
    late        everything else: it was surely not loaded

When more keys are to be remembered than may be, those that were modified first are forgotten. Where names sort by time,
all that is forgotten sorts before all that is remembered, and the floor rises to it. Elsewhere the horizon rises to the
time of the last file that was forgotten. A file that may have been loaded is never loaded by itself: it is counted.
After an operator moved the position, and where a job starts at a key, the floor is that position.

Beside them stand files of which nothing was loaded: those that could not be read (`unread`), which are loaded once they
were changed, those that an operator named to be left out (`skipped`), and those that one asked for again (`asked`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum

from lading.model.positions import BEGINNING, LASTING, PartitionState
from lading.storage.store import ObjectInfo

_FLOOR, _PASSED, _KEYS, _SEEN, _HORIZON = "late.floor", "late.passed", "late.keys", "late.seen", "late.horizon"
_UNREAD, _ASKED, _SKIPPED = "late.unread", "late.asked", f"{LASTING}skipped"
MOST_UNREAD = 1000
"""Files that could not be read and are remembered as such; of older ones only that they were passed is known."""
_BETWEEN = "\0"
"""No key of S3 or of a file system holds it."""
_DIGEST = 3
_NO_DIGEST = b"\0" * _DIGEST
"""Of a file that an older version loaded."""
_LATEST_S = 2**32 - 1


class FileStatus(Enum):
    """How a listed file relates to what was loaded."""

    KNOWN = "known"
    CHANGED = "changed"
    FRESH = "fresh"
    FORGOTTEN = "forgotten"
    LATE = "late"
    UNREAD = "unread"
    """It could not be read, and is as it was then."""
    SKIPPED = "skipped"
    ASKED = "asked"


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is kept of a loaded file besides its key."""

    modified_s: int
    digest: bytes = _NO_DIGEST
    """Of its etag; a few bytes, enough to notice a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The files that were loaded, as far as they are remembered."""

    floor: str = BEGINNING
    horizon_s: int | None = None
    """Files that were modified up to then may be among those that are forgotten. None: the floor covers those."""
    passed: int | None = 0
    """How many loaded files are forgotten; None: the job did not start at the beginning."""
    keys: Mapping[str, Remembered] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was loaded yet, as far as anybody knows."""
        return not self.keys and not self.passed

    def status_of(self, file: ObjectInfo, at: str) -> FileStatus:
        """What a listed file is to a job whose position is `at`."""
        if file.key in self.skipped:
            return FileStatus.SKIPPED
        if file.key in self.asked:
            return FileStatus.ASKED
        remembered = self.keys.get(file.key)
        is_same = remembered is not None and remembered.digest in (_NO_DIGEST, digest_of(file.etag))
        if file.key in self.unread:
            # Nothing of it was loaded, so that what it is now cannot be loaded twice.
            return FileStatus.UNREAD if is_same or remembered is None else FileStatus.LATE
        if remembered is not None:
            return FileStatus.KNOWN if is_same else FileStatus.CHANGED
        if file.key > at:
            return FileStatus.FRESH
        if file.key <= self.floor or (self.horizon_s is not None and seconds_of(file.modified) <= self.horizon_s):
            return FileStatus.FORGOTTEN
        return FileStatus.LATE

    def adding(self, taken: Iterable[ObjectInfo], *, at_most: int, pinned: Collection[str] = ()) -> Window:
        """The window after a batch. Pinned keys are never forgotten."""
        new = {file.key: Remembered(seconds_of(file.modified), digest_of(file.etag)) for file in taken}
        known = {**self.keys, **new}
        spare = sorted((seen.modified_s, key) for key, seen in known.items() if key not in pinned)
        dropped = spare[: max(0, len(known) - at_most)]
        kept = replace(
            self,
            keys={key: known[key] for key in known.keys() - {key for _, key in dropped}},
            unread=tuple(key for key in self.unread if key not in new),
            asked=tuple(key for key in self.asked if key not in new),
        )
        return _forgetting(kept, dropped) if dropped else kept


def _forgetting(kept: Window, dropped: list[tuple[int, str]]) -> Window:
    highest, newest_s = max(key for _, key in dropped), dropped[-1][0]
    passed = None if kept.passed is None else kept.passed + len(dropped)
    # Files of one second tell nothing about the order of names, so times must differ too.
    sorts_by_time = all(highest < key and newest_s < seen.modified_s for key, seen in kept.keys.items())
    if sorts_by_time and kept.keys:
        return replace(kept, floor=max(kept.floor, highest), passed=passed)
    return replace(kept, horizon_s=max(newest_s, kept.horizon_s or 0), passed=passed)


def seconds_of(modified: datetime) -> int:
    """A modification time as it is remembered."""
    return min(max(0, int(modified.timestamp())), _LATEST_S)


def digest_of(etag: str) -> bytes:
    """A few bytes that another etag hardly has."""
    found = hashlib.blake2b(etag.encode(), digest_size=_DIGEST).digest()
    return found if found != _NO_DIGEST else b"\0\0\1"


def read_window(state: PartitionState, now: datetime) -> Window:
    """The window as the bill keeps it. `now` stands for the times of files that an older version remembered."""
    marks = state.marks
    unread, asked, skipped = (tuple(json.loads(marks.get(mark) or "[]")) for mark in (_UNREAD, _ASKED, _SKIPPED))
    aside = Window(unread=unread, asked=asked, skipped=skipped)
    if _KEYS not in marks:
        return replace(aside, floor=state.at, passed=0 if state.at == BEGINNING else None)
    text = _unpack(marks[_KEYS]).decode()
    names = text.split(_BETWEEN) if text else []
    passed, horizon = marks[_PASSED], marks.get(_HORIZON, "")
    return replace(
        aside,
        floor=marks[_FLOOR],
        horizon_s=int(horizon) if horizon else None,
        passed=int(passed) if passed else None,
        keys=dict(zip(names, _read_seen(marks.get(_SEEN, ""), len(names), now), strict=True)),
    )


def _read_seen(text: str, count: int, now: datetime) -> list[Remembered]:
    content = _unpack(text)
    if not content:
        return [Remembered(seconds_of(now))] * count
    times = struct.unpack(f"<{count}I", content[: 4 * count])
    digests = content[4 * count :]
    return [Remembered(time, digests[n * _DIGEST : (n + 1) * _DIGEST]) for n, time in enumerate(times)]


def render_window(window: Window) -> dict[str, str]:
    """The window as marks of the partition. Sorted keys share their beginnings, so they pack well."""
    names = sorted(window.keys)
    seen = [window.keys[name] for name in names]
    times = struct.pack(f"<{len(seen)}I", *(each.modified_s for each in seen))
    return {
        _FLOOR: window.floor,
        _HORIZON: "" if window.horizon_s is None else str(window.horizon_s),
        _PASSED: "" if window.passed is None else str(window.passed),
        _KEYS: _pack(_BETWEEN.join(names).encode()),
        _SEEN: _pack(times + b"".join(each.digest for each in seen)),
    }


_ASIDE = {"unread": _UNREAD, "asked": _ASKED, "skipped": _SKIPPED}


def render_aside(window: Window, before: Window) -> dict[str, str]:
    """What stands beside the window, as marks: only what was changed."""
    changed = {name: getattr(window, name) for name in _ASIDE if getattr(window, name) != getattr(before, name)}
    return {_ASIDE[name]: json.dumps(keys, ensure_ascii=False) if keys else "" for name, keys in changed.items()}


def without_window(state: PartitionState) -> dict[str, str]:
    """The other marks of a position."""
    own = (_FLOOR, _PASSED, _KEYS, _SEEN, _HORIZON, *_ASIDE.values())
    return {mark: said for mark, said in state.marks.items() if mark not in own}


def with_unread(window: Window, key: str) -> Window:
    """The window when a file that was just taken could not be read."""
    return replace(window, unread=(*(each for each in window.unread if each != key), key)[-MOST_UNREAD:])


def _pack(content: bytes) -> str:
    return base64.b85encode(zlib.compress(content)).decode() if content else ""


def _unpack(text: str) -> bytes:
    return zlib.decompress(base64.b85decode(text)) if text else b""
