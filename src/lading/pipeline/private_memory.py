"""Keeping other processes of the same user from reading the memory and the environment of this one."""

from __future__ import annotations

import ctypes
import sys

_SET_DUMPABLE = 4


def hide_memory() -> bool:
    """Close /proc/<pid>/mem and environ to other processes, also those of the same user, and write no core dumps.

    Children that are forked have it too; programs that are executed have not. Returns whether the system could do it.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        return int(ctypes.CDLL(None, use_errno=True).prctl(_SET_DUMPABLE, 0, 0, 0, 0)) == 0
    except (OSError, AttributeError):
        return False
