"""Section "scaling" and its parts."""

from __future__ import annotations

from collections.abc import Callable

from bench.pages import Pages
from bench.scaling import age, cores, flame, prefix, rows

PARTS: dict[str, Callable[[Pages], None]] = {
    "scaling-cores": cores.run,
    "scaling-rows": rows.run,
    "scaling-prefix": prefix.run,
    "scaling-age": age.run,
    "scaling-flames": flame.run,
}


def run(pages: Pages) -> None:
    """All of them."""
    for part in PARTS.values():
        part(pages)
