"""`lading demo`: load files into real tables, kill the loader in the middle of a commit, start again, count."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from lading.cli.demo_worker import JOBS, create_table, open_table
from lading.clock import SystemClock
from lading.errors import ConfigError
from lading.model.bill import Bill
from lading.tables.base import LakeTable

FILES = 40
CITIES = ("Aarhus", "Bergen", "Cádiz", "Đà Nẵng", "Essen", "Fès", "Győr")
KILLS = ("commit.after=kill:4", "commit.before=kill:3")


def demo(
    home: Annotated[Path, typer.Option(help="Where the demo keeps everything.")] = Path("demo-home"),
    rows: Annotated[int, typer.Option(min=FILES, help="How many orders to make.")] = 1_000_000,
) -> None:
    """Load a million orders into a Delta and an Iceberg table, with two SIGKILLs in the middle of commits."""
    console = Console(highlight=False)
    _make_home(home)
    clock = SystemClock()
    bad = _write_orders(home / "inbox", rows)
    size = sum(path.stat().st_size for path in (home / "inbox").iterdir()) / 1e6
    console.print(
        f"{FILES} CSV files, {rows:,} orders, {size:.0f} MB; {bad:,} of them have an amount that is no number"
    )
    results = []
    for kind in JOBS:
        table = create_table(home, kind)
        began = clock.monotonic_s()
        _load_with_kills(home, kind, table, console, clock)
        results.append((kind, table, clock.monotonic_s() - began))
    _show(console, home, rows, bad, results)


def _make_home(home: Path) -> None:
    if home.exists() and not (home / "inbox").is_dir():
        msg = f"{home} is there and was not made by the demo"
        raise ConfigError(msg, left="It was not touched.", todo="Choose another place with --home.")
    shutil.rmtree(home, ignore_errors=True)
    (home / "inbox").mkdir(parents=True)


def _write_orders(inbox: Path, rows: int) -> int:
    rng = random.Random(7)  # noqa: S311 - a demo wants the same orders every time
    bad = 0
    for number in range(FILES):
        first, last = rows * number // FILES, rows * (number + 1) // FILES
        lines = ["id,city,amount"]
        for order in range(first, last):
            is_bad = rng.random() < 0.0005
            bad += is_bad
            lines.append(
                f"{order},{rng.choice(CITIES)},{'n/a' if is_bad else f'{rng.randrange(100, 99999) / 100:.2f}'}"
            )
        (inbox / f"orders-{number:04d}.csv").write_text("\n".join(lines) + "\n")
    return bad


def _load_with_kills(home: Path, kind: str, table: LakeTable, console: Console, clock: SystemClock) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(f"orders → {kind:<8}", total=None)
        for failpoint in (*KILLS, ""):
            worker = _start(home, kind, failpoint)
            while worker.poll() is None:
                progress.update(bar, completed=_loaded(table, kind))
                clock.sleep(0.1)
            progress.update(bar, completed=_loaded(table, kind))
            if worker.returncode == -signal.SIGKILL:
                progress.console.print(
                    f"  [yellow]killed[/yellow] (SIGKILL) at {failpoint.partition('=')[0]}; starting again"
                )
            elif worker.returncode:
                raise typer.Exit(worker.returncode)
        progress.update(bar, total=_loaded(table, kind))


def _start(home: Path, kind: str, failpoint: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "lading.cli.demo_worker", str(home), kind]
    return subprocess.Popen(command, env={**os.environ, "LADING_FAILPOINTS": failpoint})  # noqa: S603 - our own module


def _loaded(table: LakeTable, kind: str) -> int:
    head = table.read_head(JOBS[kind])
    return table.bills.read(JOBS[kind], head).totals.rows.loaded if head else 0


def _bills(table: LakeTable, kind: str) -> Iterator[Bill]:
    head = table.read_head(JOBS[kind])
    while head is not None:
        bill = table.bills.read(JOBS[kind], head)
        yield bill
        head = bill.continues


def _show(console: Console, home: Path, rows: int, bad: int, results: list[tuple[str, LakeTable, float]]) -> None:
    shown = Table(
        "table", "rows", "distinct ids", "bad rows", "commits", "sum of amount", "seconds", title="What is there"
    )
    is_exact = True
    for kind, _, seconds in results:
        table = open_table(home, kind)
        content = table.scan()
        totals = next(_bills(table, kind)).totals
        distinct = pc.count_distinct(content["id"]).as_py()
        amount = pc.sum(content["amount"].cast(pa.decimal128(20, 2))).as_py()
        is_exact &= (content.num_rows, distinct, totals.rows.error) == (rows - bad, rows - bad, bad)
        cells = (f"{content.num_rows:,}", f"{distinct:,}", f"{totals.rows.error:,}", str(totals.commits), f"{amount:,}")
        shown.add_row(kind, *cells, f"{seconds:.1f}")
    console.print(shown)
    if not is_exact:
        console.print("[red]Rows are missing or doubled.[/red]")
        raise typer.Exit(1)
    console.print(f"[green]Every order is in each table exactly once[/green], through four kills. Look into {home}/.")
