"""The memory of the driver while a load runs, and the processor time of all its processes."""

from __future__ import annotations

import os
from pathlib import Path

from rich.table import Table

from bench.scale import CACHE


class Watch:
    """Looks at this process and at its Java process whenever a batch has been committed."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, int, int]] = []

    def note(self, rows: int) -> None:
        """So many rows are loaded by now."""
        self._seen.append((rows, _resident_kb(os.getpid()), sum(map(_resident_kb, _javas()))))

    def table(self, title: str) -> Table:
        """At most twelve of what was seen."""
        shown = Table("rows loaded", "driver's Python, MB", "Java, MB", title=title)
        step = max(1, len(self._seen) // 12)
        for rows, python, java in self._seen[::step]:
            shown.add_row(f"{rows:,}", f"{python / 1024:,.0f}", f"{java / 1024:,.0f}")
        return shown


def cpu_s(*others: str) -> float:
    """Seconds of processor time of this process and all below it, but for servers whose command has such a word.

    Where other work goes on beside a measurement, it says more than the clock.
    """
    return sum(_cpu_s(pid) for pid in _tree() if not any(word in _command(pid) for word in others))


def _javas() -> list[int]:
    """Java processes below this one, but for a broker and for other Sparks that are measured."""
    others = ("kafka.Kafka", str(CACHE))
    return [pid for pid in _tree() if _name(pid) == "java" and not any(word in _command(pid) for word in others)]


def _tree() -> list[int]:
    """This process and all below it."""
    found, todo = list[int](), [os.getpid()]
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            children.setdefault(_parent(entry), []).append(int(entry.name))
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def _cpu_s(pid: int) -> float:
    """Its own, and that of its children which have ended."""
    try:
        fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _command(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def _parent(entry: Path) -> int:
    return int(_field(entry, "PPid") or 0)


def _name(pid: int) -> str:
    return _field(Path("/proc") / str(pid), "Name")


def _resident_kb(pid: int) -> int:
    return int((_field(Path("/proc") / str(pid), "VmRSS") or "0").split()[0])


def _field(entry: Path, name: str) -> str:
    try:
        lines = (entry / "status").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"{name}:")), "")
