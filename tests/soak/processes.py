"""Processes below another one, from /proc."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from lading.clock import SystemClock


def processes_below(pid: int) -> dict[int, str]:
    """All of them, also those below those, with their names."""
    parents, names = dict[int, int](), dict[int, str]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # It has ended meanwhile.
                begin, _, rest = (folder / "stat").read_text().rpartition(")")
                parents[int(folder.name)] = int(rest.split()[1])
                names[int(folder.name)] = begin.partition("(")[2]
    found, ring = dict[int, str](), {pid}
    while ring:
        ring = {child for child, parent in parents.items() if parent in ring}
        found |= {child: names[child] for child in ring}
    return found


def kill(pid: int) -> bool:
    """SIGKILL. Whether it was still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(pids: dict[int, str], patience_s: float) -> list[int]:
    """Those that are still there after so long."""
    clock = SystemClock()
    end_s = clock.monotonic_s() + patience_s
    while (left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]) and clock.monotonic_s() < end_s:
        clock.sleep(0.05)
    return left
