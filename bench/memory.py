"""The memory of a process and of all that it started."""

from __future__ import annotations

import threading
from pathlib import Path


class Peak:
    """Watches the resident memory of a tree of processes. Pages that are shared count once for each process."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._highest_kb = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop_mb(self) -> float:
        self._stop.set()
        self._thread.join()
        return self._highest_kb / 1024

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            self._highest_kb = max(self._highest_kb, _tree_kb(self._root))


def _tree_kb(root: int) -> int:
    parents: dict[int, list[int]] = {}
    sizes: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        fields = _status(entry)
        if fields:
            parents.setdefault(fields[0], []).append(int(entry.name))
            sizes[int(entry.name)] = fields[1]
    total, todo = 0, [root]
    while todo:
        pid = todo.pop()
        total += sizes.get(pid, 0)
        todo += parents.get(pid, [])
    return total


def _status(entry: Path) -> tuple[int, int] | None:
    try:
        lines = dict(line.split(":", 1) for line in (entry / "status").read_text().splitlines() if ":" in line)
        return int(lines["PPid"]), int(lines.get("VmRSS", "0 kB").split()[0])
    except (OSError, KeyError, ValueError):
        return None
