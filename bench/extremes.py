"""Section "files-extremes": very many very small files, and one very large file, each through a job on Spark."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.compare.contenders import CONTENDERS
from bench.compare.server import Server
from bench.files import SCALE, write_files
from bench.peers.order import Order

SMALL_FILES, SMALL_ROWS = 100_000, 27
LARGE_BYTES = 2 * 1024 * 1024 * 1024
_BLOCK_ROWS = 1_000_000


def run() -> None:
    """Measure and print the table."""
    shown = Table("files", "rows", "bytes", "seconds from process start", "rows/s", "peak memory of all processes, MB")
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-", dir=os.environ.get("LADING_BENCH_FOLDER")))
    try:
        small = write_files(folder / "small", max(1, int(SMALL_FILES * SCALE)), SMALL_ROWS, "csv")
        _load(shown, small, folder / "small-home")
        shutil.rmtree(small)
        _load(shown, _large(folder / "large"), folder / "large-home")
    finally:
        shutil.rmtree(folder)
    Console().print(shown)


def _load(shown: Table, inbox: Path, home: Path) -> None:
    files = list(inbox.iterdir())
    rows = sum(file.read_bytes().count(b"\n") - 1 for file in files)
    size = sum(file.stat().st_size for file in files)
    order = Order(form="csv", ending="csv", inbox=str(inbox), home=str(home / "load"), extra={}, once=True)
    with Server(CONTENDERS[0], home) as server:
        taken = server.load_once(order)
    shown.add_row(
        f"{len(files):,}",
        f"{rows:,}",
        f"{size:,}",
        f"{taken.seconds:.0f}",
        f"{rows / taken.seconds:,.0f}",
        f"{taken.peak_mb:,.0f}",
    )


def _large(folder: Path) -> Path:
    folder.mkdir()
    first, wanted = 0, int(LARGE_BYTES * SCALE)
    with (folder / "large.csv").open("w") as file:
        file.write("id,city,amount,note\n")
        while file.tell() < wanted:
            numbers = range(first, first + _BLOCK_ROWS)
            file.writelines(f"{n},city {n % 100},{n % 1000}.25,some text {n}\n" for n in numbers)
            first += _BLOCK_ROWS
    return folder
