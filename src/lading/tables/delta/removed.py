"""Which commits took files out of a Delta table, as its log tells."""

from __future__ import annotations

import json
from collections.abc import Collection
from urllib.parse import unquote

from lading.storage.store import ObjectStore
from lading.tables.base import Removal, Removals
from lading.tables.compaction.model import COMPACTION, MARK
from lading.tables.delta.actions import entry_key

_INTERESTING = (b'{"remove":', b'{"commitInfo":')


def find_removals(storage: ObjectStore, version: int, paths: Collection[str]) -> Removals:
    """Read the log from its newest entry back, as far as it is kept."""
    if not paths:
        return Removals(is_complete=True)
    found: dict[str, Removal] = {}
    at = version
    while at >= 0 and (content := storage.get(entry_key(at))) is not None:
        removed, operation, is_rewrite = _read(content)
        for path in removed:
            if path in paths and path not in found:
                found[path] = Removal(by=f"{operation} in version {at}", is_rewrite=is_rewrite)
        at -= 1
    return Removals(found=found, is_complete=at < 0, complete_since=at)


def _read(content: bytes) -> tuple[list[str], str, bool]:
    removed: list[str] = []
    operation, changes_data = "a commit", False
    for line in content.splitlines():
        if not line.startswith(_INTERESTING):
            continue
        action = json.loads(line)
        if "commitInfo" in action:
            told = action["commitInfo"]
            operation = COMPACTION if MARK in told else str(told.get("operation") or operation)
        else:
            removed.append(unquote(str(action["remove"]["path"])))
            changes_data = changes_data or bool(action["remove"].get("dataChange", True))
    return removed, operation, not changes_data
