"""What a row costs when there are more of them: the same file under more and more names."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq

from bench.compare.cases import Case
from bench.compare.check import data_files
from bench.compare.contenders import CONTENDERS
from bench.compare.server import Server
from bench.pages import Pages, markdown_table
from bench.peers.order import Order
from bench.scale import FOLDER, scaled
from bench.scaling.plot import Plot

ROWS = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
OF_FILE = 100_000
REPEATS = {0: 5, 1: 3}
"""Short loads are measured more often; medians."""


def run(pages: Pages) -> None:
    """Measure, and show the table and its plot."""
    contender = CONTENDERS[0]
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-", dir=FOLDER))
    clock, cpu, table = list[tuple[float, float]](), list[tuple[float, float]](), list[list[str]]()
    try:
        case = Case(name="one", title="", form="csv", ending="csv", files=1, rows=scaled(OF_FILE, least=1000))
        one = case.write(folder / "one") / "000000.csv"
        with Server(contender, folder / "server") as server:
            _load(server, folder, "warm", one, 20, case)
            for at, rows in enumerate(ROWS):
                files = rows // OF_FILE
                total = files * case.rows
                taken = [_load(server, folder, f"{at}-{n}", one, files, case) for n in range(REPEATS.get(at, 1))]
                clock.append((total, median(seconds for seconds, _ in taken) / total * 1e6))
                cpu.append((total, median(cpu_s for _, cpu_s in taken) / total * 1e6))
                table.append(
                    [f"{total:,}", f"{clock[-1][1]:.3f} µs", f"{cpu[-1][1]:.3f} µs", f"{1e6 / clock[-1][1]:,.0f}"]
                )
                print(*table[-1], sep=", ", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    plot = Plot(
        title="What a row costs (CSV, vector path)",
        across="rows",
        up="µs a row",
        lines={"by the clock": clock, "processor time": cpu},
    )
    image = pages.image("scaling-rows", plot.svg(), "The cost of a row, by the number of rows")
    head = ("rows", "a row, by the clock", "processor time", "rows/s")
    pages.show("scaling-rows", f"{image}\n\n{markdown_table(head, table)}")


def _load(server: Server, folder: Path, name: str, one: Path, files: int, case: Case) -> tuple[float, float]:
    """Seconds and seconds of processor time of a load of so many names of the file."""
    inbox, home = folder / f"in-{name}", folder / "server" / name
    inbox.mkdir()
    try:
        for number in range(files):
            os.link(one, inbox / f"{number:06}.csv")
        order = Order(form="csv", ending="csv", inbox=str(inbox), home=str(home), extra={}, once=False)
        taken = server.load(order)
        loaded = sum(pq.read_metadata(file).num_rows for file in data_files(order.out))
        wanted = files * sum(1 for n in range(case.rows) if n % 100 != 7)
        if loaded != wanted:
            raise RuntimeError(f"{loaded:,} rows were loaded, and not {wanted:,}")
        return taken.seconds, taken.cpu_s
    finally:
        shutil.rmtree(inbox)
        shutil.rmtree(home, ignore_errors=True)
