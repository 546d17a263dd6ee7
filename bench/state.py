"""Section "state": windows, deduplication and joins beside Structured Streaming, on the same files and session.

Structured Streaming keeps its state in RocksDB with changelog checkpoints, which is what it recommends for large state.
All results are compared with what DuckDB computes from the input.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.memory import Cpu
from bench.state_back import come_back
from bench.state_cases import CASES, FILES, PER_BATCH, ROCKS, SCALE, Case, check, lading, streaming, write_rows
from lading.pipeline.java import find_java
from lading.pipeline.session import open_session

ROUNDS = int(os.environ.get("LADING_BENCH_ROUNDS", "3"))
CONSOLE = Console()
CONTENDERS = {"lading": lading, "streaming": streaming}
WARM_UP = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one load took."""

    seconds: float
    cpu_s: float
    """Of all processes, all that the load set up among it."""


def run(names: Sequence[str] = tuple(CASES)) -> None:
    """Measure and print, each figure as soon as it is known."""
    shown = Table("case", "rows", "Lading, rows/s", "Structured Streaming, rows/s", "ratio", "ratio of processor time")
    for name in names:
        folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
        try:
            shown.add_row(name, *_measured(folder, CASES[name]))
        finally:
            shutil.rmtree(folder)
    CONSOLE.print(shown)
    CONSOLE.print(
        f"Interleaved, {ROUNDS} rounds in one session after a small one of each that is left out, {FILES} files in "
        f"batches of {PER_BATCH}, then one with one row. Ratios are of neighbours, above 1 Lading is faster. Results "
        "are compared with DuckDB's."
    )


def _measured(folder: Path, case: Case) -> list[str]:
    write_rows(folder / "small", case, WARM_UP * SCALE)
    rows = write_rows(folder / "data", case)
    taken = _taken(folder, case)
    rates = [f"{rows / median(one.seconds for one in taken[who]):,.0f}" for who in CONTENDERS]
    return [f"{rows:,}", *rates, _ratio(taken, lambda one: one.seconds), _ratio(taken, lambda one: one.cpu_s)]


def _ratio(taken: dict[str, list[Taken]], figure: Callable[[Taken], float]) -> str:
    """The median, and that of each round."""
    pairs = zip(taken["lading"], taken["streaming"], strict=True)
    ratios = [figure(theirs) / figure(ours) for ours, theirs in pairs]
    return f"{median(ratios):.2f} ({', '.join(f'{ratio:.2f}' for ratio in ratios)})"


def _taken(folder: Path, case: Case) -> dict[str, list[Taken]]:
    spark = open_session(ROCKS, find_java(os.environ, folder), folder)
    taken: dict[str, list[Taken]] = {who: [] for who in CONTENDERS}
    try:
        for who, load in CONTENDERS.items():
            load(spark, folder / f"{who}-small", folder / "small", case)
        for number in range(ROUNDS):
            for who, load in CONTENDERS.items():
                home = folder / f"{who}-{number}"
                cpu = Cpu(os.getpid())
                seconds = load(spark, home, folder / "data", case)
                one = Taken(seconds=seconds, cpu_s=cpu.stop_s())
                taken[who].append(one)
                written = check(home, folder / "data", case, who)
                told = f"{one.seconds:.1f} s, {one.cpu_s:.1f} s of processor time, {written:,} rows written"
                CONSOLE.print(f"{who}, round {number}: {told}")
                shutil.rmtree(home)
    finally:
        spark.stop()
    return taken


def run_back() -> None:
    """The time from a kill to the next commit."""
    come_back(CONSOLE, ROUNDS)
