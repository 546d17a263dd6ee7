"""What a soak came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

CLASSES = ("LOSS", "DUP", "REORDER", "CORRUPT", "PROGRESS-MISMATCH", "STUCK")
_COLUMNS = ("kills", "commits", "rows", *CLASSES)


@dataclass(slots=True)
class Counts:
    """All that was done and all that was found, of one form or of one job of it."""

    done: Counter[str] = field(default_factory=Counter)
    """Lives, kills, commits, rows, and what else happened."""
    kills: Counter[str] = field(default_factory=Counter)
    """By what was killed."""
    found: Counter[str] = field(default_factory=Counter)
    """By class."""
    examples: list[str] = field(default_factory=list)

    def blame(self, kind: str, what: str, count: int = 1) -> None:
        """Something is wrong."""
        if count:
            self.found[kind] += count
            self.examples.append(f"{kind} {count}: {what}")

    def expect(self, holds: bool, kind: str, what: str) -> None:
        if not holds:
            self.blame(kind, what)

    def kill(self, what: str) -> None:
        self.kills[what] += 1
        self.done["kills"] += 1

    def add(self, other: Counts) -> None:
        self.done += other.done
        self.kills += other.kills
        self.found += other.found
        self.examples += other.examples

    @property
    def is_clean(self) -> bool:
        return not self.found.total()


def render(rows: dict[str, Counts]) -> str:
    """A table for people, and what else happened."""
    lines = [f"{'':24}" + "".join(f"{name:>11}" if len(name) < 10 else f"{name:>19}" for name in _COLUMNS)]
    for name, counts in rows.items():
        figures = [f"{(counts.done + counts.found)[column]:,}" for column in _COLUMNS]
        cells = (f"{f:>11}" if len(c) < 10 else f"{f:>19}" for c, f in zip(_COLUMNS, figures, strict=True))
        lines.append(f"{name:24}" + "".join(cells))
    for name, counts in rows.items():
        others = {key: n for key, n in sorted(counts.done.items()) if key not in _COLUMNS}
        if others or counts.kills:
            told = ", ".join(f"{n:,} {key}" for key, n in (*others.items(), *sorted(counts.kills.items())))
            lines.append(f"{name}: {told}")
        lines += [f"  {name}: {example}" for example in counts.examples[:20]]
    return "\n".join(lines)
