"""The one-line hook that lets a test stop the real process at a named place.

`LADING_FAILPOINTS="name=kill"` or `"name=kill:3"` (the third time), several joined by commas. Without it the hook
costs one look at an empty dict.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from lading.errors import ConfigError

Action = Callable[[str], None]

_armed: dict[str, Action] = {}


def failpoint(name: str) -> None:
    """Do what a test armed at this place, usually nothing."""
    if _armed and (action := _armed.get(name)):
        action(name)


def arm(name: str, action: Action) -> None:
    """Do `action` at this place until disarmed."""
    _armed[name] = action


def disarm_all() -> None:
    """Forget everything that was armed."""
    _armed.clear()


def arm_from_text(text: str) -> None:
    """Arm what `LADING_FAILPOINTS` says."""
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, what = item.partition("=")
        verb, _, count = what.partition(":")
        if not name or verb != "kill" or (count and not count.isdigit()):
            msg = f"LADING_FAILPOINTS has an item that is not name=kill or name=kill:N: {item!r}"
            raise ConfigError(msg, left="Nothing was started.", todo="Correct it or unset the variable.")
        arm(name, _kill_at(int(count or 1)))


def _kill_at(hit: int) -> Action:
    seen = 0

    def kill(_name: str) -> None:
        nonlocal seen
        seen += 1
        if seen >= hit:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill
