"""Section "files" and its parts: Lading against plain Structured Streaming, interleaved in one run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.contenders import CONTENDERS
from bench.memory import Peak
from lading.pipeline.java import find_java
from lading.pipeline.session import open_session

WARM_ROUNDS = int(os.environ.get("LADING_BENCH_ROUNDS", "3"))
COLD_ROUNDS = int(os.environ.get("LADING_BENCH_COLD_ROUNDS", "2"))
SCALE = float(os.environ.get("LADING_BENCH_SCALE", "1"))
CONSOLE = Console()
SIZES = {"csv": (16, 400_000), "json": (16, 400_000), "small": (2000, 200)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cold:
    """One load from the start of a process to its end."""

    seconds: float
    peak_mb: float


def run(names: tuple[str, ...] = ("csv", "json", "small")) -> None:
    """Measure and print a table for each kind, and each figure as soon as it is known."""
    for name in names:
        folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
        try:
            _measure(name, folder)
        finally:
            shutil.rmtree(folder)
    CONSOLE.print(
        f"Interleaved. Warm: {WARM_ROUNDS} rounds in one session after one that is left out. Cold: {COLD_ROUNDS} "
        "rounds, from the start of the process to its end. Ratios are of neighbours in one round, medians of all "
        "rounds. Memory is that of all processes of a cold round. Filter, upper-case, one multiplication."
    )


def _measure(name: str, folder: Path) -> None:
    shown = Table("files", "contender", "warm rows/s", "cold s", "peak memory, MB")
    files, rows = SIZES[name]
    per_file, form = max(1, int(rows * SCALE)), "json" if name == "json" else "csv"
    inbox = write_files(folder / "in", files, per_file, form)
    cold: dict[str, list[Cold]] = {contender: [] for contender in CONTENDERS}
    for number in range(COLD_ROUNDS):
        for contender, taken in cold.items():
            taken.append(run_cold(contender, form, inbox, folder / f"cold-{contender}-{number}"))
    warm = _warm(folder, inbox, form)
    total = files * per_file
    for contender in CONTENDERS:
        shown.add_row(
            name,
            contender,
            f"{total / median(warm[contender]):,.0f}",
            f"{median(one.seconds for one in cold[contender]):.1f}",
            f"{max(one.peak_mb for one in cold[contender]):,.0f}",
        )
    cold_s = {contender: [one.seconds for one in taken] for contender, taken in cold.items()}
    shown.add_row(name, "ratio", f"{_ratio(warm):.2f}", f"{_ratio(cold_s):.2f}", "")
    CONSOLE.print(shown)


def _warm(folder: Path, inbox: Path, form: str) -> dict[str, list[float]]:
    spark = open_session({}, find_java(os.environ, folder), folder)
    taken: dict[str, list[float]] = {contender: [] for contender in CONTENDERS}
    try:
        for number in range(1 + WARM_ROUNDS):
            for contender, load in CONTENDERS.items():
                seconds = load(spark, folder / f"{contender}-{number}", inbox, form)
                CONSOLE.print(f"{contender}, round {number}: {seconds:.1f} s")
                if number:
                    taken[contender].append(seconds)
    finally:
        spark.stop()
    return taken


def _ratio(seconds: dict[str, list[float]]) -> float:
    """How much faster Lading is: above 1 it is faster."""
    return median(theirs / ours for ours, theirs in zip(seconds["lading"], seconds["streaming"], strict=True))


def run_cold(contender: str, form: str, inbox: Path, home: Path) -> Cold:
    """One load in a process of its own."""
    began = time.perf_counter()
    arguments = [sys.executable, "-m", "bench.contenders", contender, form, str(inbox), str(home)]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        peak = Peak(process.pid)
        code = process.wait()
    taken = Cold(seconds=time.perf_counter() - began, peak_mb=peak.stop_mb())
    CONSOLE.print(f"{contender} from process start: {taken.seconds:.1f} s, {taken.peak_mb:,.0f} MB")
    if code:
        msg = f"{contender} ended with {code}"
        raise RuntimeError(msg)
    return taken


def write_files(folder: Path, files: int, rows: int, form: str) -> Path:
    """Files with four columns and so many rows each."""
    folder.mkdir(parents=True)
    for number in range(files):
        base = number * rows
        if form == "csv":
            lines = [f"{base + n},city {n % 100},{n % 1000}.25,some text {n}" for n in range(rows)]
            text = "\n".join(["id,city,amount,note", *lines])
        else:
            text = "\n".join(
                f'{{"id": {base + n}, "city": "city {n % 100}", "amount": "{n % 1000}.25", "note": "some text {n}"}}'
                for n in range(rows)
            )
        (folder / f"{number:06d}.{form}").write_text(text + "\n")
    return folder
