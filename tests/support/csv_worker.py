"""A loader process that a test can kill: one folder of CSV files into one table, without Spark."""

from __future__ import annotations

import sys
from pathlib import Path

from lading.clock import SystemClock
from lading.commit.coordinator import Coordinator, CoordinatorPorts
from lading.commit.steps import run_steps
from lading.failpoints import arm_from_text
from lading.ids import JobId, new_incarnation, new_token
from lading.model.batch import Limits
from lading.model.job import Job
from lading.model.table import Column, TableSpec
from lading.plan.planner import Planner
from lading.settings import load_settings
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


if __name__ == "__main__":
    arm_from_text(load_settings().service.failpoints)
    load(Path(sys.argv[1]), sys.argv[2])
