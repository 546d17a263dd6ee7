"""Names that were probably meant: the one place for "did you mean"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

CUTOFF = 0.7
SHORT_CUTOFF = 0.6
"""For names of at most five letters, of which one wrong letter is a large part: cvs, url."""
_SHORT = 5


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is nearest, in its own spelling; empty when none is near."""
    by_form = {each.casefold(): each for each in known}
    cutoff = SHORT_CUTOFF if len(name) <= _SHORT else CUTOFF
    near = difflib.get_close_matches(name.casefold(), by_form, n=1, cutoff=cutoff)
    return by_form[near[0]] if near and near[0] != name.casefold() else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`Did you mean x? ` for the beginning of what to do, or nothing."""
    near = nearest(name, known)
    return f"Did you mean {near}? " if near else ""
