"""A merger in memory: what a job keeps of its rows, as files that only manifests name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from lading.errors import StageError
from lading.model.batch import BatchPlan, Report, StagedFile, StateFile
from lading.model.state import StateChange, StateRef
from lading.testing.source import Row

Kept = tuple[tuple[int, int], int]
"""The keys of a row that was loaded, and its event time."""
BUCKETS = 16


@dataclass(slots=True)
class StateObjects:
    """The storage that all incarnations share."""

    files: dict[str, list[Kept]] = field(default_factory=dict)
    manifests: dict[str, list[str]] = field(default_factory=dict)
    spools: dict[str, list[Row]] = field(default_factory=dict)

    def rows(self, state: StateRef | None) -> list[Kept] | None:
        """Everything that a bill says is kept; None when something of it is not there."""
        if state is None:
            return []
        paths = self.manifests.get(state.manifest)
        if paths is None or any(path not in self.files for path in paths):
            return None
        return [kept for path in paths for kept in self.files[path]]


def keys_of(row: Row) -> tuple[int, int]:
    """Two records of a key in a row are the same thing, sent twice."""
    return row.key, row.number // 2


def bucket_of(keys: tuple[int, int]) -> int:
    """Which part of the state they belong to. Tasks come and go; this stays."""
    return (5 * keys[0] + keys[1]) % BUCKETS


class ScriptedMerger:
    """Lets the first row of its keys through, in tasks that share the buckets. Keeps copies of files on the disk of its
    machine, which crashes cut."""

    def __init__(self, objects: StateObjects, write_file: Callable[[str, Sequence[Row]], None], rng: Random) -> None:
        self._objects = objects
        self._write_file = write_file
        self._rng = rng
        self.copies: dict[str, list[Kept]] = {}
        self.horizon = 0
        self.faults = 0.0
        self.tasks: Callable[[], int] = lambda: 1
        """Among how many tasks the buckets are shared now."""

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        watermark = plan.positions.watermark_us
        before = self._live(self._known(state), watermark)
        handed_on = [row for report in reports for file in report.spool for row in self._objects.spools[file.path]]
        tasks, paths, size = self.tasks(), list[str](), len(before)
        kept, files = list[Row](), list[StagedFile]()
        for task in range(tasks):
            of_task = [each for each in before if bucket_of(each[0]) % tasks == task]
            rows = [row for row in handed_on if bucket_of(keys_of(row)) % tasks == task]
            firsts, new = self._firsts(rows, of_task)
            if self._rng.random() < self.faults:
                self._written(new)  # A first attempt wrote its files and died; nobody names them.
                self._staged(firsts)
            paths += [*self._written(new), *self._written(of_task)]
            files += self._staged(firsts)
            kept += firsts
            size += len(new)
        if self._rng.random() < self.faults:
            msg = "A task of the merging job failed four times"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")
        name = f"state/{self._rng.getrandbits(48):012x}.manifest"
        self._objects.manifests[name] = paths
        ref = StateRef(manifest=name, digest=name, files=len(paths), rows=size, size_bytes=8 * size)
        return StateChange(
            state=ref if handed_on or state is not None else None,
            files=tuple(files),
            duplicates=len(handed_on) - len(kept),
        )

    def _firsts(self, rows: list[Row], before: list[Kept]) -> tuple[list[Row], list[Kept]]:
        """Rows that are the first of their keys, and what is kept of them."""
        firsts, new = list[Row](), list[Kept]()
        for row in rows:
            if not any(keys == keys_of(row) and abs(at - row.event) < self.horizon for keys, at in [*before, *new]):
                new.append((keys_of(row), row.event))
                firsts.append(row)
        return firsts, new

    def _known(self, state: StateRef | None) -> list[Kept]:
        if state is None:
            return []
        return [kept for path in self._objects.manifests[state.manifest] for kept in self._read(path)]

    def _read(self, path: str) -> list[Kept]:
        there = self._objects.files[path]
        copy = self.copies.get(path)
        if copy is not None and self._is_whole(copy, there):
            return copy
        self.copies[path] = there
        if there and self._rng.random() < 0.2:
            self.copies[path] = there[:-1]  # The machine lost power while the copy was written.
        return there

    def _is_whole(self, copy: list[Kept], there: list[Kept]) -> bool:
        return len(copy) == len(there)

    def _live(self, known: list[Kept], watermark: int | None) -> list[Kept]:
        return known if watermark is None else [kept for kept in known if kept[1] > watermark - self.horizon]

    def _written(self, known: list[Kept]) -> list[str]:
        paths = []
        for bucket in range(BUCKETS):
            part = [kept for kept in known if bucket_of(kept[0]) == bucket]
            if part:
                paths.append(f"state/{self._rng.getrandbits(48):012x}.rows")
                self._objects.files[paths[-1]] = part
        return paths

    def _staged(self, rows: list[Row]) -> tuple[StagedFile, ...]:
        if not rows:
            return ()
        path = f"data/{self._rng.getrandbits(48):012x}.rows"
        self._write_file(path, rows)
        return (StagedFile(path=path, rows=len(rows), size_bytes=8 * len(rows)),)


def spooled(objects: StateObjects, path: str, rows: list[Row]) -> StateFile:
    """Rows on their way to the merger."""
    objects.spools[path] = rows
    times = [row.event for row in rows]
    return StateFile(
        path=path,
        rows=len(rows),
        size_bytes=8 * len(rows),
        digest=path,
        buckets=1,
        min_us=min(times),
        max_us=max(times),
    )
