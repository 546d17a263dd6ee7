"""Rows a second with one core, and with all."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from statistics import median

from bench.compare.cases import cases, expected
from bench.compare.check import check
from bench.compare.contenders import CONTENDERS
from bench.compare.server import Server
from bench.pages import Pages, markdown_table
from bench.peers.order import Order
from bench.scale import FOLDER, ROUNDS
from bench.scaling.plot import Plot

WHO = ("lading", "lading-general", "streaming")


def run(pages: Pages) -> None:
    """Measure the CSV files, and show the table and its plot."""
    counts = sorted({1, len(os.sched_getaffinity(0))})
    case = cases()["csv"]
    lines: dict[str, list[tuple[float, float]]] = {}
    rows: list[list[str]] = []
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-", dir=FOLDER))
    try:
        inbox = case.write(folder / "in")
        for one in (one for one in CONTENDERS if one.name in WHO):
            rates: list[float] = []
            for cores in counts:
                rates.append(
                    case.total / _median_s(Server(one, folder / f"{one.name}-{cores}", cores=cores), inbox, folder)
                )
                lines.setdefault(one.title, []).append((cores, rates[-1] / 1e6))
            rows.append([one.title, *(f"{rate:,.0f}" for rate in rates), f"{rates[-1] / rates[0]:.2f}"])
            print(*rows[-1], sep=", ", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    plot = Plot(title="Rows a second, by cores (CSV)", across="cores", up="million rows/s", lines=lines)
    image = pages.image("scaling-cores", plot.svg(), "Rows a second with one core and with all")
    head = ("16 CSV files, warm, rows/s", *(f"{count} core{'s' * (count > 1)}" for count in counts), "gain")
    pages.show("scaling-cores", f"{image}\n\n{markdown_table(head, rows)}")


def _median_s(server: Server, inbox: Path, folder: Path) -> float:
    """Seconds of a warm load, checked."""
    case, taken = cases()["csv"], list[float]()
    with server:
        for number in range(1 + ROUNDS):
            home = folder / f"load-{number}"
            order = Order(form="csv", ending="csv", inbox=str(inbox), home=str(home), extra={}, once=False)
            taken.append(server.load(order).seconds)
            check("scaling", order.out, expected(case.total))
            shutil.rmtree(home)
    return median(taken[1:])
