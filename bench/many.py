"""Section "many": a thousand idle jobs in one service, and twenty busy ones that share Spark."""

from __future__ import annotations

import os
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lading.service.facade import Lading
from lading.service.scheduling.scheduler import Scheduler

IDLE = int(os.environ.get("LADING_BENCH_JOBS", "1000"))
BUSY = int(os.environ.get("LADING_BENCH_BUSY", "20"))
WATCH_S = 30.0
INTERVAL_S = 10
SAMPLES = 8


def run() -> None:
    """Measure and print."""
    console = Console()
    _idle(console)
    _busy(console)


def _idle(console: Console) -> None:
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
    try:
        with Lading(folder / "home") as lading:
            began = time.monotonic()
            for number in range(IDLE):
                _job(lading, folder, number, rows=0)
            made_s = time.monotonic() - began
            scheduler = Scheduler(lading)
            began = time.monotonic()
            scheduler.start()
            _until(lambda: _rest(lading) == IDLE, 600)
            opened_s = time.monotonic() - began
            time.sleep(INTERVAL_S + 2)
            cpu, wall = _cpu_s(), time.monotonic()
            time.sleep(WATCH_S)
            share = (_cpu_s() - cpu) / (time.monotonic() - wall)
            memory = _memory_mb()
            lading.get_ready()  # As `lading serve` does when it is ready.
            late = [_latency(lading, folder, number) for number in random.Random(7).sample(range(IDLE), SAMPLES)]
            scheduler.close()
    finally:
        shutil.rmtree(folder)
    table = Table("idle jobs", "made in s", "opened in s", "CPU of one core", "Python memory, MB", "new file, s")
    shown = ", ".join(f"{seconds:.1f}" for seconds in late)
    table.add_row(f"{IDLE:,}", f"{made_s:.0f}", f"{opened_s:.0f}", f"{share:.1%}", f"{memory:,.0f}", shown)
    console.print(table)
    console.print(f"A new file should be loaded within 3 s of its poll interval, which is {INTERVAL_S} s.")


def _busy(console: Console) -> None:
    """Every job has more files than can be loaded in the time; what each got is compared with its even share."""
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
    try:
        with Lading(folder / "home") as lading:
            lading.get_ready()
            for number in range(BUSY):
                _job(lading, folder, number, rows=2000, files=200, batch_files=2)
            scheduler = Scheduler(lading)
            scheduler.start()
            _until(lambda: min(_loaded(lading)) > 0, 300)
            before = _loaded(lading)
            time.sleep(60)
            got = [after - was for was, after in zip(before, _loaded(lading), strict=True)]
            scheduler.close(5)
    finally:
        shutil.rmtree(folder)
    even = sum(got) / len(got)
    table = Table("busy jobs", "rows in a minute", "least of an even share", "most")
    table.add_row(f"{BUSY}", f"{sum(got):,}", f"{min(got) / even:.2f}", f"{max(got) / even:.2f}")
    console.print(table)
    console.print("None should get less than half of its even share.")


def _job(lading: Lading, folder: Path, number: int, *, rows: int, files: int = 1, batch_files: int = 256) -> None:
    inbox = folder / f"in-{number}"
    inbox.mkdir()
    for each in range(files if rows else 0):
        lines = "\n".join(f"{row},essen" for row in range(rows))
        (inbox / f"{each:05}.csv").write_text(f"id,city\n{lines}\n")
    lading.sql(
        f"CREATE TABLE t{number} (id BIGINT, city STRING) USING delta;"
        f'CREATE JOB j{number} PROPERTIES("max_interval"="{INTERVAL_S}", "s3.max_batch_files"="{batch_files}") '
        f'ON STREAMING DO INSERT INTO t{number} SELECT * FROM FILE("uri"="{inbox}/*.csv", '
        f'"format"="csv_with_names", "column_separator"=",")'
    )


def _latency(lading: Lading, folder: Path, number: int) -> float:
    began = time.monotonic()
    (folder / "draft").write_text("id,city\n1,essen\n")
    (folder / "draft").rename(folder / f"in-{number}" / "new.csv")
    _until(lambda: (lading.job(f"j{number}").totals or _NONE).rows.loaded > 0, 120)
    return time.monotonic() - began


def _rest(lading: Lading) -> int:
    records = [stored.record for stored in lading.store.list_jobs()]
    return sum(record.runtime_message.startswith("No new data") for record in records)


def _loaded(lading: Lading) -> list[int]:
    records = sorted((stored.record for stored in lading.store.list_jobs()), key=lambda record: record.name)
    return [record.totals.rows.loaded if record.totals else 0 for record in records]


def _until(met: Callable[[], bool], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not met():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.1)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _memory_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


class _Rows:
    loaded = 0


class _None:
    rows = _Rows()


_NONE = _None()
