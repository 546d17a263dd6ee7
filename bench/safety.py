"""What safety costs: a load by Lading beside the same work by a bare Spark job that commits nothing.

Both have the same reader, mapping and writer, in the same tasks of the same session, and write the same Parquet files.
The bare job cuts the files into splits and runs one Spark job over them: no head, no checks, no bill, no commit, no
record in the store. A round runs each once, in turns who is first; ratios are of neighbours in one round.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession
from rich.table import Table

from bench.files import CONSOLE, SCALE, write_files
from lading.clock import SystemClock
from lading.pipeline.java import find_java
from lading.pipeline.session import open_session
from lading.plan.planner import Planner
from lading.service.facade import Lading

ROUNDS = int(os.environ.get("LADING_BENCH_ROUNDS", "7"))
FILES, ROWS = 16, 400_000
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one load."""

    seconds: float
    cpu_s: float
    """Of this process, of Java and of the Python workers."""


def run() -> None:
    """Measure and print."""
    folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
    try:
        _show(_rounds(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _rounds(folder: Path) -> dict[str, list[Cost]]:
    inbox = write_files(folder / "in", FILES, max(1, int(ROWS * SCALE)), "csv")
    spark = open_session({}, find_java(os.environ, folder), folder)
    taken = {"lading": list[Cost](), "bare": list[Cost]()}
    try:
        for number in range(1 + ROUNDS):
            names = list(taken) if number % 2 else list(reversed(taken))
            costs = {name: _measured(spark, folder / f"{name}-{number}", inbox, name) for name in names}
            CONSOLE.print(f"round {number}: {costs}")
            for name, cost in costs.items() if number else ():
                taken[name].append(cost)
    finally:
        spark.stop()
    return taken


def _measured(spark: SparkSession, home: Path, inbox: Path, name: str) -> Cost:
    with Lading(home, session=spark) as service:
        service.sql(
            "CREATE TABLE t (id BIGINT, city STRING, amount DECIMAL(10,2)) USING delta;"
            'CREATE JOB j PROPERTIES ("s3.max_batch_files"="5000") ON STREAMING DO INSERT INTO t SELECT id, '
            f'upper(city), amount * 1.1 FROM FILE("uri"="{inbox}/*.csv", "format"="csv_with_names", '
            '"column_separator"=",") WHERE city <> \'city 7\''
        )
        began, cpu_s = time.perf_counter(), _cpu_s()
        rows = _load(service) if name == "lading" else _stage_only(service)
        cost = Cost(seconds=time.perf_counter() - began, cpu_s=_cpu_s() - cpu_s)
        written = len(list((home / "warehouse").rglob("*.parquet")))
    if rows != FILES * max(1, int(ROWS * SCALE)) or not written:
        msg = f"{name} read {rows} rows into {written} files"
        raise RuntimeError(msg)
    shutil.rmtree(home)
    return cost


def _load(service: Lading) -> int:
    service.run()
    totals = service.job("j").totals
    return totals.rows.total if totals is not None else 0


def _stage_only(service: Lading) -> int:
    compiled, _ = service.compile(service.any_job("j"))
    planner = Planner(compiled.source.driver, SystemClock())
    plan = planner.plan(planner.open(compiled.job.start), compiled.job.limits)
    reports = service._stager(compiled).stage(plan)  # noqa: SLF001 - what runs the tasks, without what is around it
    compiled.close()
    return sum(report.rows.total for report in reports)


def _cpu_s() -> float:
    """Processor time so far of this process and all below it, also of those that have ended."""
    return sum(_ticks(pid) for pid in (os.getpid(), *_below(os.getpid()))) / _TICKS


def _ticks(pid: int) -> int:
    with suppress(OSError):  # It ended meanwhile, and its parent has its time.
        return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return 0


def _below(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_below(child)]
    return found


def _seconds_of(cost: Cost) -> float:
    return cost.seconds


def _cpu_of(cost: Cost) -> float:
    return cost.cpu_s


def _show(taken: dict[str, list[Cost]]) -> None:
    pairs = list(zip(taken["lading"], taken["bare"], strict=True))
    shown = Table("", "Lading, median", "bare Spark job, median", "Lading / bare, median", "each round")
    for name, of in (("seconds", _seconds_of), ("processor seconds", _cpu_of)):
        ratios = [of(ours) / of(bare) for ours, bare in pairs]
        medians = [f"{median(of(cost) for cost in taken[each]):.2f}" for each in ("lading", "bare")]
        shown.add_row(name, *medians, f"{median(ratios):.3f}", ", ".join(f"{ratio:.3f}" for ratio in ratios))
    CONSOLE.print(shown)
    CONSOLE.print(f"{len(pairs)} rounds after one that is left out; {FILES} files of {int(ROWS * SCALE):,} rows.")
