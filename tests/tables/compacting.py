"""Tables with many small files, for tests of compaction."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from lading.ids import JobId
from lading.model.bill import Bill
from lading.model.job import Job
from lading.model.outcome import Landed
from lading.model.table import TableSpec
from lading.tables.base import LakeTable
from lading.tables.compaction.choose import Group
from lading.tables.compaction.model import Compacted, CompactionPolicy
from lading.tables.compaction.run import compact_table, plan_compaction
from lading.testing.clock import ManualClock
from tests.tables.drive import SPEC, load, new_job, opening, put_and_commit, some_rows
from tests.tables.rig import Rig, RigTable

EAGER = CompactionPolicy(min_files=2, min_age=timedelta(0))
LATER = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class Filled:
    """A table, a job that loads into it, and its newest bill."""

    rig: Rig
    name: str
    table: RigTable
    job: Job
    bill: Bill
    bills: list[Bill] = field(default_factory=list)

    @property
    def lake(self) -> LakeTable:
        return cast("LakeTable", self.table)

    def add(self, rows: pa.Table) -> Bill:
        """One batch in files of its own."""
        staged = self.rig.stage(self.table, rows, f"{secrets.randbits(64):016x}-0-0")
        bill = load(self.job, self.bill, staged)
        assert isinstance(put_and_commit(self.table, bill), Landed)
        self.bill = bill
        self.bills.append(bill)
        return bill

    def add_numbers(self, batches: int, rows: int = 3) -> None:
        first = sum(bill.tally.written for bill in self.bills)
        for number in range(batches):
            self.add(some_rows(first + number * rows, rows))

    def compact(self, policy: CompactionPolicy = EAGER) -> list[Compacted]:
        return compact(self.lake, policy)

    def read(self) -> list[dict[str, Any]]:
        return sorted(self.rig.rows(self.table), key=str)


def filled(rig: Rig, *, batches: int = 6, spec: TableSpec = SPEC, name: str = "small") -> Filled:
    """A table with so many batches of three rows."""
    table, job = rig.create(name, spec), new_job()
    first = opening(job)
    assert isinstance(put_and_commit(table, first), Landed)
    made = Filled(rig=rig, name=name, table=table, job=job, bill=first)
    made.add_numbers(batches)
    return made


def plan(lake: LakeTable, policy: CompactionPolicy = EAGER) -> list[Group]:
    groups, why_not = plan_compaction(lake, policy, LATER)
    assert not why_not
    return groups


def compact(lake: LakeTable, policy: CompactionPolicy = EAGER) -> list[Compacted]:
    return list(compact_table(lake, plan(lake, policy), policy, ManualClock(LATER)))


def outcomes(done: Sequence[Compacted]) -> list[str]:
    return [each.outcome for each in done]


def in_order(lake: LakeTable, only: set[str] | None = None) -> list[dict[str, Any]]:
    """All rows, or those of some files: by the place of the file in its line, then by their place in the file."""
    filesystem, root = lake.bills.storage.arrow()
    files = sorted(lake.live_files().files, key=lambda file: (file.line, file.order, file.path))
    chosen = [file.path for file in files if only is None or file.path in only]
    tables = [pq.ParquetFile(f"{root}/{path}", filesystem=filesystem).read() for path in chosen]
    return [row for rows in tables for row in rows.to_pylist()]


def job_of(made: Filled) -> JobId:
    return made.job.job_id
