"""Names of partition folders. For people: readers take partition values from the table's own metadata."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import unquote_to_bytes

_LONGEST = 100
_HALF_ESCAPE = re.compile(r"%[0-9A-Fa-f]?$")


def short_name(name: str) -> str:
    """A name that every store takes: a long one is cut, and told apart by a digest.

    File systems refuse long names, stores long keys, and a partition value can be any text. It is never cut inside a
    character: readers that turn `%XX` back refuse half of one.
    """
    if len(name) <= _LONGEST:
        return name
    kept = name[:_LONGEST]
    while not _is_whole(kept):
        kept = kept[: kept.rindex("%")]
    return f"{kept}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _is_whole(name: str) -> bool:
    if _HALF_ESCAPE.search(name):
        return False
    try:
        unquote_to_bytes(name).decode()
    except UnicodeDecodeError:
        return False
    return True
