"""A loader process that a test can kill: one folder of CSV files into one table, without Spark.

A parent imports everything once and forks a loader for each request: to start Python and its libraries takes longer
than what a loader does. The loader is a process of its own, and is killed as such.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Self

from lading.clock import SystemClock
from lading.commit.coordinator import Coordinator
from lading.commit.ports import CoordinatorPorts
from lading.commit.steps import run_steps
from lading.failpoints import arm_from_text
from lading.ids import JobId, new_incarnation, new_token
from lading.model.batch import Limits
from lading.model.job import Job
from lading.model.table import Column, TableSpec
from lading.plan.planner import Planner
from lading.tables.base import LakeTable, Writer
from lading.tables.kind import TablePlace
from lading.tables.registry import NAMES, kind_of
from tests.support.csv_folder import CsvFolder, CsvStager

JOBS = {name: JobId(f"de17a000-0000-4000-8000-{number:012d}") for number, name in enumerate(NAMES)}
SPEC = TableSpec(
    columns=(
        Column(name="id", type="bigint", nullable=False),
        Column(name="city", type="string"),
        Column(name="amount", type="decimal(10,2)"),
    )
)


def create_table(home: Path, kind: str) -> LakeTable:
    """Make the table of the demo."""
    kind_of(kind).create(_place(home, kind), SPEC)
    return open_table(home, kind)


def open_table(home: Path, kind: str) -> LakeTable:
    """Open the table of the demo."""
    return kind_of(kind).open(_place(home, kind))


def _place(home: Path, kind: str) -> TablePlace:
    return TablePlace(home=home, name="shop.orders", location=str(home / "warehouse" / f"orders_{kind}"))


def load(home: Path, kind: str) -> None:
    """Load what is there, four files a batch."""
    table, incarnation = open_table(home, kind), new_incarnation()
    spec = table.writer_spec()

    def open_writer(attempt: str) -> Writer:
        return kind_of(kind).open_writer(spec, attempt)

    inbox, clock = home / "inbox", SystemClock()
    world = CoordinatorPorts(
        table=table,
        bills=table.bills,
        planner=Planner(CsvFolder(inbox), clock),
        stager=CsvStager(inbox, open_writer, incarnation),
        clock=clock,
        new_token=new_token,
    )
    job = Job(job_id=JOBS[kind], name=f"orders_{kind}", limits=Limits(files=4))
    coordinator = Coordinator(job, world, incarnation)
    run_steps(coordinator.start())
    while run_steps(coordinator.run_batch()):
        pass


class CsvLoaders:
    """Loaders, one after the other."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.support.csv_worker"]
        self._parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._parent.communicate()

    def run(self, home: Path, kind: str, failpoints: str) -> int:
        """Start a loader, which may die, and say how it ended: 0, or minus the signal."""
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        print(json.dumps([str(home), kind, failpoints]), file=self._parent.stdin, flush=True)
        return int(self._parent.stdout.readline())


def _serve() -> None:
    """Fork for each line; answer with how it ended."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(_incarnation(*json.loads(line)))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _incarnation(home: str, kind: str, failpoints: str) -> int:
    try:
        arm_from_text(failpoints)
        load(Path(home), kind)
    except BaseException:  # noqa: BLE001 - the end of a process that has no other way to say it
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    for name in NAMES:
        if not kind_of(name).missing():
            import_module(f"lading.tables.{name}.table")
    _serve()
