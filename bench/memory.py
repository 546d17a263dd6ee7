"""The memory and the processor time of a process and of all that it started."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
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
        self._look()
        return self._highest_kb / 1024

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            self._look()

    def _look(self) -> None:
        self._highest_kb = max(self._highest_kb, _tree_kb(self._root))


_OFTEN_S = 0.02


class Cpu:
    """Adds up the processor time of a tree of processes. What one takes in the moment before it ends is missed: those
    that fork workers do not wait for them, so nobody is told. So those that are known are looked at often."""

    def __init__(self, root: int, *, every_s: float = 0.5) -> None:
        self._root = root
        self._every_s = every_s
        self._before = self._now()
        self._seen: dict[int, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop_s(self) -> float:
        self._stop.set()
        self._thread.join()
        self._seen.update(self._now())
        ticks = sum(seen - self._before.get(pid, 0) for pid, seen in self._seen.items())
        return ticks / os.sysconf("SC_CLK_TCK")

    def _watch(self) -> None:
        looks = round(self._every_s / _OFTEN_S)
        while True:
            known = self._now()
            for _ in range(looks):
                self._seen.update(known)
                if self._stop.wait(_OFTEN_S):
                    return
                known = {pid: ticks for pid in known if (ticks := _cpu_ticks(Path(f"/proc/{pid}/stat")))}

    def _now(self) -> dict[int, int]:
        return {pid: _cpu_ticks(Path(f"/proc/{pid}/stat")) for pid in _tree(_all_processes(), self._root)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a tree of processes used."""

    cpu_s: float
    peak_mb: float


class Usage:
    """Both at once."""

    def __init__(self, root: int) -> None:
        self._cpu = Cpu(root, every_s=0.2)
        self._peak = Peak(root)

    def stop(self) -> Used:
        return Used(cpu_s=self._cpu.stop_s(), peak_mb=self._peak.stop_mb())


def tree_of(root: int) -> list[int]:
    """A process and all below it."""
    return _tree(_all_processes(), root)


def _tree_kb(root: int) -> int:
    processes = _all_processes()
    return sum(processes[pid][1] for pid in _tree(processes, root) if pid in processes)


def _all_processes() -> dict[int, tuple[int, int]]:
    """Parent and memory of each."""
    entries = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {int(entry.name): fields for entry in entries if (fields := _status(entry))}


def _tree(processes: dict[int, tuple[int, int]], root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in processes.items():
        children.setdefault(parent, []).append(pid)
    found, todo = list[int](), [root]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def _cpu_ticks(path: Path) -> int:
    try:
        return sum(map(int, path.read_text().rpartition(")")[2].split()[11:13]))
    except (OSError, ValueError):
        return 0


def _status(entry: Path) -> tuple[int, int] | None:
    try:
        lines = dict(line.split(":", 1) for line in (entry / "status").read_text().splitlines() if ":" in line)
        return int(lines["PPid"]), int(lines.get("VmRSS", "0 kB").split()[0])
    except (OSError, KeyError, ValueError):
        return None
