"""How a setting is written down: a field of a frozen record, with what people are told of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LARGEST = 1_000_000
ABOUT = "about"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the page and the command line say of a setting."""

    what: str
    option: str = ""
    """As `lading serve` calls it."""
    in_file: bool = True
    """Whether `lading.toml` may have it."""
    choices: tuple[str, ...] = ()
    is_secret: bool = False
    is_spaced: bool = False
    """Several values are written with spaces only: a comma may be part of one."""
    shown: str = ""
    """What the page shows as default, where the value does not speak for itself."""
    least: int = 0
    most: int = LARGEST


def setting(default: Any, what: str, *, is_secret: bool = False, **more: Any) -> Any:
    about = About(what=what, is_secret=is_secret, **more)
    return field(default=default, repr=not is_secret, metadata={ABOUT: about})
