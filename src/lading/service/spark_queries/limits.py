"""What queries may take, one by one and together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lading.errors import ConfigError

MIB = 1024 * 1024
_SIZE = re.compile(r"(\d+)\s*([kmg]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": MIB, "g": 1024 * MIB}
_LEAST_MEMORY = 512 * MIB
"""With less Spark does not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLimits:
    """Bounds of queries over tables. Those over jobs and information_schema have smaller ones of their own."""

    seconds: float = 300.0
    rows: int = 10_000_000
    size_bytes: int = 1024 * MIB
    """Bytes of all rows of an answer, as Arrow keeps them."""
    memory_bytes: int = 2048 * MIB
    """The memory of Java in the query process, which all queries share."""
    at_once: int = 4
    each: int = 2
    """Of those, one user's."""
    waiting: int = 64
    """Queries that may wait for their turn, of all users; one user's may be a quarter of that."""


_SETTINGS: dict[str, tuple[str, Callable[[str], float]]] = {}


def parse_limits(texts: Iterable[str]) -> QueryLimits:
    """Limits as somebody set them: `timeout=600`, `memory=4g`."""
    limits = QueryLimits()
    for text in texts:
        name, _, value = text.partition("=")
        field, read = _SETTINGS.get(name.strip().lower(), ("", float))
        if not field:
            msg = f"There is no query limit {name.strip() or text!r}"
            raise ConfigError(msg, left="Nothing was started.", todo=f"There are: {', '.join(sorted(_SETTINGS))}.")
        try:
            found = read(value.strip())
        except ValueError:
            found = 0
        if found <= 0:
            msg = f"The query limit {text!r} has no value that can be used"
            todo = "Write a number above 0, or a size such as 512m or 2g."
            raise ConfigError(msg, left="Nothing was started.", todo=todo)
        limits = replace(limits, **{field: found})  # type: ignore[arg-type]  # each is read as its field has it
    if limits.memory_bytes < _LEAST_MEMORY:
        msg = f"Queries cannot run in {limits.memory_bytes} bytes of memory"
        raise ConfigError(msg, left="Nothing was started.", todo=f"Give them {_LEAST_MEMORY // MIB}m or more.")
    return replace(limits, each=min(limits.each, limits.at_once))


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return int(found[1]) * _UNITS[found[2].lower()]


_SETTINGS.update(
    {
        "timeout": ("seconds", float),
        "rows": ("rows", int),
        "bytes": ("size_bytes", _size),
        "memory": ("memory_bytes", _size),
        "at_once": ("at_once", int),
        "per_user": ("each", int),
        "waiting": ("waiting", int),
    }
)
