"""What a person changed of a job, in words: for lists of changes and the timeline. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from lading.service.views.records import AuditView

_UNSAID = ("definition_before", "slot_before", "head", "epoch", "why", "changed", "positions")
_NOTHING = "(not set)"


def change_words(entry: AuditView) -> str:
    """The statement, or what it did where a page did it without one."""
    return entry.statement or "; ".join(_parts(entry.facts))


def _parts(facts: Mapping[str, str]) -> Iterator[str]:
    moved = _pairs(facts.get("positions", ""))
    for partition, (start, end) in moved.items():
        name = f"position of {partition}" if len(moved) > 1 else "position"
        yield f"{name}: {start or 'the beginning'} → {end or 'nothing more is read'}"
    for what, (old, new) in _pairs(facts.get("changed", "")).items():
        # Of a job that loads files it is the position once more.
        if not (moved and what == "property offset"):
            yield f"{what}: {old or _NOTHING} → {new or _NOTHING}"
    yield from (f"{name}: {value}" for name, value in facts.items() if name not in _UNSAID)
    if why := facts.get("why"):
        yield f"why: {why}"


def _pairs(text: str) -> dict[str, tuple[str, str]]:
    """Before and after, by name; what cannot be read is left as it is written."""
    try:
        found = json.loads(text or "{}")
        return {str(name): (str(old or ""), str(new or "")) for name, (old, new) in found.items()}
    except (ValueError, TypeError, AttributeError):
        return {"facts": ("", text)}
