"""GROUP BY window(…) in memory: a merger that counts rows, and what must be true of what it writes and keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lading.errors import StageError
from lading.model.batch import BatchPlan, Report
from lading.model.state import StateChange, StateRef
from lading.testing.merger import Kept, ScriptedMerger
from lading.testing.source import Row
from lading.testing.verdict import CORRUPT, DUP, LOSS, Findings

Window = tuple[int, int]
"""A key, and when the window begins."""


def window_of(row: Row, size: int) -> Window:
    return row.key, row.event - row.event % size


class WindowCounter(ScriptedMerger):
    """Keeps a log of partial counts, by window and key. A window that is behind the watermark becomes a result."""

    size = 1

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        watermark, before = plan.positions.watermark_us, self._known(state)
        handed_on = [row for report in reports for file in report.spool for row in self._objects.spools[file.path]]
        closing = Counter[Window]()
        for window, count in before:
            closing[window] += count if self._is_closed(window, watermark) else 0
        results = [result_row(window, count) for window, count in closing.items() if count]
        new = Counter(window_of(row, self.size) for row in handed_on)
        kept = [*self._live(before, watermark), *new.items()]
        paths = self._written(kept)
        if self._rng.random() < self.faults:
            msg = "A task of the merging job failed four times"
            raise StageError(msg, left="Nothing was committed.", todo="The batch is planned again.")
        name = f"state/{self._rng.getrandbits(48):012x}.manifest"
        self._objects.manifests[name] = paths
        ends = [start + self.size for (_, start), _ in kept]
        ref = StateRef(
            manifest=name,
            digest=name,
            files=len(paths),
            rows=len(kept),
            size_bytes=8 * len(kept),
            next_us=min(ends, default=None),
        )
        is_changed = bool(handed_on or results)
        return StateChange(state=ref if is_changed else state, files=self._staged(results))

    def _is_closed(self, window: Window, watermark: int | None) -> bool:
        return watermark is not None and window[1] + self.size <= watermark

    def _live(self, known: list[Kept], watermark: int | None) -> list[Kept]:
        return [kept for kept in known if not self._is_closed(kept[0], watermark)]


def result_row(window: Window, count: int) -> Row:
    """A result as the table has it."""
    return Row(key=window[0], number=count, fate="result", event=window[1])


def due_results(
    size: int,
    kept: tuple[list[Kept] | None, list[Kept] | None],
    watermark: int | None,
    rows: Sequence[Row],
    findings: Findings,
) -> list[Row]:
    """The results that a bill must have, by what the bill before kept. What it keeps itself is checked."""
    before, after = kept
    if not findings.expect(before is not None and after is not None, CORRUPT, "a bill names state that is not there"):
        return []
    closed, is_open = Counter[Window](), Counter(window_of(row, size) for row in rows)
    for (key, start), count in before or ():
        is_due = watermark is not None and start + size <= watermark
        (closed if is_due else is_open)[key, start] += count
    found = Counter[Window]()
    for window, count in after or ():
        found[window] += count
    findings.expect(not is_open - found, LOSS, f"{sum((is_open - found).values())} rows of open windows are forgotten")
    findings.expect(not found - is_open, DUP, f"{sum((found - is_open).values())} rows are kept that were written")
    return [result_row(window, count) for window, count in closed.items()]


def check_written_once(written: set[tuple[int, int, int]], epoch: int, due: Sequence[Row], findings: Findings) -> None:
    """No window is written by two bills. An operator's move may have it read again, in a new epoch."""
    new = {(epoch, row.key, row.event) for row in due}
    findings.expect(not written & new, DUP, f"{len(written & new)} windows are written a second time")
    written |= new
