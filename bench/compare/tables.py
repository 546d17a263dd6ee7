"""The table of a case."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Protocol

from bench.compare.cases import Case
from bench.compare.contenders import BASE, Contender
from bench.compare.server import Taken
from bench.pages import markdown_table

HEAD = (
    "rows/s, warm",
    "ratio warm",
    "from process start",
    "ratio cold",
    "peak memory, cold / warm",
    "CPU s per million rows",
    "files written",
)


class Measured(Protocol):
    """What one contender took."""

    warm: dict[int, Taken]
    cold: dict[int, Taken]
    bytes: int
    failed: str


def table_of(case: Case, measured: Mapping[Contender, Measured]) -> str:
    """Markdown. Ratios are of neighbours in one round, medians of all rounds; above 1 is faster than the base."""
    base = next((rounds for one, rounds in measured.items() if one.name == BASE and not rounds.failed), None)
    rows = [[one.title, *_cells(case, rounds, base)] for one, rounds in measured.items()]
    warm = max((len(rounds.warm) for rounds in measured.values()), default=0)
    cold = max((len(rounds.cold) for rounds in measured.values()), default=0)
    told = f"{case.total:,} rows; medians of {warm} warm rounds and {cold} from process start."
    return f"{markdown_table([case.title, *HEAD], rows)}\n\n{told}"


def _cells(case: Case, rounds: Measured, base: Measured | None) -> list[str]:
    if rounds.failed:
        return [f"not measured: {rounds.failed.replace('|', '/')}", *[""] * (len(HEAD) - 1)]
    million = case.total / 1e6
    cells = [""] * len(HEAD)
    if rounds.warm:
        cells[0] = f"{case.total / median(one.seconds for one in rounds.warm.values()):,.0f}"
        cells[1] = _ratio(rounds.warm, base.warm if base else {})
        cells[5] = f"{median(one.cpu_s for one in rounds.warm.values()) / million:.2f}"
    if rounds.cold:
        cells[2] = f"{median(one.seconds for one in rounds.cold.values()):.1f} s"
        cells[3] = _ratio(rounds.cold, base.cold if base else {})
    peaks = [_peak(taken) for taken in (rounds.cold, rounds.warm)]
    cells[4] = " / ".join(peaks) + " MB"
    cells[6] = f"{rounds.bytes / 1e6:,.1f} MB"
    return cells


def _peak(taken: Mapping[int, Taken]) -> str:
    return f"{max(one.peak_mb for one in taken.values()):,.0f}" if taken else "-"


def _ratio(ours: Mapping[int, Taken], theirs: Mapping[int, Taken]) -> str:
    both = [theirs[number].seconds / ours[number].seconds for number in ours if number in theirs]
    return f"{median(both):.2f}" if both else ""
