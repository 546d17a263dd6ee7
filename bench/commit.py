"""Section "commit": what a commit of eight files costs, and whether it gets dearer with age."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from lading.ids import Incarnation, JobId, new_token
from lading.model.batch import StagedFile
from lading.model.bill import Bill, BillKind
from lading.model.positions import PartitionState, Positions
from lading.model.table import Column, TableSpec
from lading.model.tally import RowCounts, Tally
from lading.tables.base import LakeTable, Writer
from lading.tables.delta.create import create_delta_table
from lading.tables.delta.writer import DeltaWriter
from lading.tables.iceberg.catalog import sqlite_catalog
from lading.tables.iceberg.table import create_iceberg_table
from lading.tables.iceberg.writer import IcebergWriter
from lading.tables.maintenance import CarePolicy

FILES = 8
MARKS = tuple(int(mark) for mark in os.environ.get("LADING_BENCH_COMMITS", "10,100,1000,5000").split(","))
WINDOW = 40
"""The median is over this many commits up to the mark (fewer at the first)."""
SPEC = TableSpec(columns=(Column(name="id", type="bigint"), Column(name="city", type="string")))
JOB = JobId("be4c4000-0000-4000-8000-000000000001")


def run() -> None:
    """Measure both formats and print the table."""
    marks = (f"{mark:,}" for mark in MARKS)
    shown = Table("format", *marks, "last / 1,000th", "care, median / max", title=f"ms per commit of {FILES} files")
    for name, create in (("delta", _delta), ("iceberg", _iceberg)):
        folder = Path(tempfile.mkdtemp(prefix="lading-bench-"))
        try:
            table, open_writer = create(folder)
            taken, care = _measure(table, open_writer)
        finally:
            shutil.rmtree(folder)
        ratio = taken[-1] / taken[MARKS.index(1000)] if 1000 in MARKS else float("nan")
        cells = (f"{ratio:.2f}", f"{median(care):.0f} / {max(care):.0f}")
        shown.add_row(name, *(f"{ms:.1f}" for ms in taken), *cells)
    console = Console()
    console.print(shown)
    console.print("Bill and commit on a local disk, fsynced. Care runs every 50 commits by the default policy; apart.")


def _delta(folder: Path) -> tuple[LakeTable, Callable[[str], Writer]]:
    table = create_delta_table(str(folder / "t"), SPEC)
    spec = table.writer_spec()
    return table, lambda attempt: DeltaWriter(spec, attempt)


def _iceberg(folder: Path) -> tuple[LakeTable, Callable[[str], Writer]]:
    table = create_iceberg_table(sqlite_catalog(folder), "bench.t", SPEC)
    spec = table.writer_spec()
    return table, lambda attempt: IcebergWriter(spec, attempt)


def _measure(table: LakeTable, open_writer: Callable[[str], Writer]) -> tuple[list[float], list[float]]:
    template = _staged(open_writer)
    policy = CarePolicy()
    bill = _next_bill(None, ())
    table.bills.put(bill)
    table.commit(None, (), bill)
    taken: list[float] = []
    care: list[float] = []
    for number in range(1, max(MARKS) + 1):
        files = _copies(table, template, number)
        following = _next_bill(bill, files)
        began = time.perf_counter()
        table.bills.put(following)
        table.commit(bill.head, files, following)
        taken.append((time.perf_counter() - began) * 1000)
        assert table.read_head(JOB) == following.head
        bill = following
        if number % policy.every_commits == 0:
            began = time.perf_counter()
            table.look_after(JOB, policy, datetime.now(UTC))
            care.append((time.perf_counter() - began) * 1000)
    return [median(taken[max(0, mark - WINDOW) : mark]) for mark in MARKS], care


def _staged(open_writer: Callable[[str], Writer]) -> StagedFile:
    writer = open_writer("template")
    writer.write(pa.record_batch({"id": pa.array(range(100)), "city": pa.array([f"city {n}" for n in range(100)])}))
    return writer.close()[0]


def _copies(table: LakeTable, template: StagedFile, number: int) -> tuple[StagedFile, ...]:
    root = Path(table.location.removeprefix("file://"))
    folder = template.path.rpartition("/")[0]
    paths = [f"{folder}/{number:06d}-{k}.parquet".removeprefix("/") for k in range(FILES)]
    for path in paths:
        os.link(root / template.path, root / path)
    return tuple(replace(template, path=path) for path in paths)


def _next_bill(base: Bill | None, files: tuple[StagedFile, ...]) -> Bill:
    rows = sum(file.rows for file in files)
    tally = Tally(
        rows=RowCounts(total=rows, loaded=rows),
        data_files=len(files),
        data_bytes=sum(file.size_bytes for file in files),
        commits=1 if base else 0,
    )
    now = datetime.now(UTC)
    partitions = {f"shard-{n}": PartitionState(at=str(base.seq if base else 0)) for n in range(8)}
    return Bill(
        job_id=JOB,
        job_name="bench",
        kind=BillKind.LOAD if base else BillKind.OPENING,
        epoch=0,
        seq=base.seq + 1 if base else 0,
        token=new_token(),
        replaces=base.head if base else None,
        continues=base.head if base else None,
        incarnation=Incarnation("bench"),
        positions=Positions(partitions=partitions),
        files=files,
        tally=tally,
        totals=base.totals + tally if base else tally,
        planned_at=now,
        billed_at=now,
    )
