"""Which keys behind the position are known: what makes late files exact.

The window reaches from its floor to the position. A key in it is known if a batch took it, and late if not; nothing
else decides: no clock, no modification time, no etag. When more keys are known than may be remembered, the floor
rises over the lowest ones. Files at or below the floor are never loaded; they are counted, as far as a count can tell.
After an operator moved the position, and where a job starts at a key, the floor is that position.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from lading.model.positions import BEGINNING, PartitionState

_FLOOR, _PASSED, _KEYS = "late.floor", "late.passed", "late.keys"
_BETWEEN = "\0"
"""No key of S3 or of a file system holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The keys between floor and position that were taken."""

    floor: str
    passed: int | None
    """How many taken keys lie at or below the floor; None: the job did not start at the beginning."""
    keys: frozenset[str]

    def adding(self, taken: Iterable[str], *, at_most: int) -> Window:
        """The window after a batch."""
        known = sorted({*self.keys, *taken})
        dropped = known[: max(0, len(known) - at_most)]
        if not dropped:
            return Window(floor=self.floor, passed=self.passed, keys=frozenset(known))
        passed = None if self.passed is None else self.passed + len(dropped)
        return Window(floor=dropped[-1], passed=passed, keys=frozenset(known[len(dropped) :]))


def read_window(state: PartitionState) -> Window:
    """The window as the bill keeps it."""
    if _KEYS not in state.marks:
        return Window(floor=state.at, passed=0 if state.at == BEGINNING else None, keys=frozenset())
    packed = base64.b85decode(state.marks[_KEYS])
    text = zlib.decompress(packed).decode() if packed else ""
    passed = state.marks[_PASSED]
    return Window(
        floor=state.marks[_FLOOR],
        passed=int(passed) if passed else None,
        keys=frozenset(text.split(_BETWEEN)) if text else frozenset(),
    )


def render_window(window: Window) -> dict[str, str]:
    """The window as marks of the partition. Sorted keys share their beginnings, so they pack well."""
    text = _BETWEEN.join(sorted(window.keys)).encode()
    return {
        _FLOOR: window.floor,
        _PASSED: "" if window.passed is None else str(window.passed),
        _KEYS: base64.b85encode(zlib.compress(text)).decode() if text else "",
    }
