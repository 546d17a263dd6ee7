"""A job's bills against its table: is every row that the bills account for there, once, and do the counts agree?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow.parquet as pq

from lading.errors import HeadLostError, NotOpenError
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.model.tally import Tally
from lading.tables.base import LakeTable
from lading.tables.storage import open_storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found."""

    job: str
    bills: int
    rows: int
    """Rows that the bills say were loaded."""
    findings: tuple[str, ...] = ()
    """Each begins with its class: LOSS, DUP, CORRUPT or PROGRESS-MISMATCH."""

    @property
    def is_clean(self) -> bool:
        return not self.findings


def verify_job(record: JobRecord, table: LakeTable) -> Verdict:
    """Read the lineage of a job and compare it with the table."""
    head = table.read_head(record.job_id)
    if head is None:
        msg = f"Job {record.name} has no head in {record.target}"
        raise NotOpenError(msg, left="Nothing was changed.", todo="Run the job first.")
    bills = [table.bills.read(record.job_id, head)]
    # Behind a bill whose history other engines removed nothing can be added up.
    while (old := bills[-1].continues) is not None and not bills[-1].is_without_history:
        try:
            bills.append(table.bills.read(record.job_id, old))
        except HeadLostError:
            break  # Older than the retention: the totals of the oldest bill left stand for them.
    lineage = bills[::-1]
    findings = [*_totals(lineage), *_files(lineage, table)]
    return Verdict(job=record.name, bills=len(lineage), rows=lineage[-1].totals.rows.loaded, findings=tuple(findings))


def _totals(lineage: list[Bill]) -> list[str]:
    running: Tally = lineage[0].totals - lineage[0].tally
    found = []
    for bill in lineage:
        running += bill.tally
        if running != bill.totals:
            found.append(f"PROGRESS-MISMATCH: the totals of seq {bill.seq} are not the sum of the bills before it")
            running = bill.totals
    return found


def _files(lineage: list[Bill], table: LakeTable) -> list[str]:
    named = Counter(file.path for bill in lineage for file in bill.files)
    there = Counter(table.files())
    found = [f"DUP: {path} is named by {count} bills" for path, count in named.items() if count > 1]
    found += [f"DUP: {path} is {count} times in the table" for path, count in there.items() if count > 1]
    gone = [path for path in named if path not in there]
    if gone:
        # Somebody may have rewritten files; then the names say nothing and only the number of rows does.
        rows = sum(file.rows for bill in lineage for file in bill.files)
        if table.scan().num_rows < rows:
            found.append(f"LOSS: {len(gone)} files that the bills name are not in the table, nor are their rows")
    filesystem, root = open_storage(table.location, table.writer_spec().options).arrow()
    for bill in lineage:
        for file in bill.files:
            if file.path in there:
                rows = pq.read_metadata(f"{root}/{file.path}", filesystem=filesystem).num_rows
                if rows != file.rows:
                    found.append(f"CORRUPT: {file.path} holds {rows} rows, its bill says {file.rows}")
    return found
