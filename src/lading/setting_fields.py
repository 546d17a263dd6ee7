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
    has_variable: bool = True
    shown: str = ""
    """What the page shows as default, where the value does not speak for itself."""
    least: int = 0
    most: int = LARGEST


def setting(default: Any, what: str, *, is_secret: bool = False, **more: Any) -> Any:
    return field(default=default, repr=not is_secret, metadata={ABOUT: About(what=what, **more)})


def option(default: Any, name: str, what: str, **more: Any) -> Any:
    return setting(default, what, option=name, has_variable=False, **more)
