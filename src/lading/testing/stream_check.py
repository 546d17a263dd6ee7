"""What a stream gave against what a table and its bills hold, in the order in which it was loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow.parquet as pq

from lading.errors import HeadLostError
from lading.ids import JobId
from lading.model.bill import Bill
from lading.storage.store import open_store
from lading.tables.base import LakeTable
from lading.testing.kinesis.verifier import Verdict, verify_rows

KEY, NUMBER = "k", "n"
"""Columns of every table that is checked: whose record it is, and which of them."""


def lineage(table: LakeTable, job_id: JobId) -> list[Bill]:
    """The bills of a job, oldest first."""
    head = table.read_head(job_id)
    bills = list[Bill]()
    while head is not None:
        try:
            bills.append(table.bills.read(job_id, head))
        except HeadLostError:
            break
        head = bills[-1].continues
    return bills[::-1]


def rows_in_load_order(table: LakeTable, job_id: JobId) -> Iterator[tuple[str, int]]:
    """Key and number of every row, by commit, then by split, then as they stand in the file.

    Splits of one commit are of partitions that share no key, so their order among each other says nothing.
    """
    filesystem, root = open_store(table.location, table.writer_spec().options).arrow()
    for bill in lineage(table, job_id):
        for file in bill.files:
            with filesystem.open_input_file(f"{root}/{file.path}") as opened:
                found = pq.read_table(opened, columns=[KEY, NUMBER])
            yield from zip(found[KEY].to_pylist(), found[NUMBER].to_pylist(), strict=True)


def check_table(
    table: LakeTable, job_id: JobId, sent: Mapping[str, int], *, maybe_twice: Iterable[tuple[str, int]] = ()
) -> Verdict:
    """Rows by the bills, in order; and the table must have the same rows, none more and none less."""
    loaded = list(rows_in_load_order(table, job_id))
    verdict = verify_rows(loaded, sent, maybe_twice=maybe_twice)
    scanned = table.scan().select([KEY, NUMBER])
    there = sorted(zip(scanned[KEY].to_pylist(), scanned[NUMBER].to_pylist(), strict=True))
    if there != sorted(loaded):
        told = f"STRANGE the table has {len(there)} rows, its bills have {len(loaded)}, or others"
        return replace(verdict, strange=verdict.strange + 1, examples=(*verdict.examples, told))
    return verdict


@dataclass(slots=True)
class Score:
    """What a proof did, for its last line."""

    name: str
    reshards: int = 0
    kills: int = 0
    rounds: int = 0
    where: set[str] = field(default_factory=set)
    verdict: Verdict = field(default_factory=lambda: Verdict(rows=0, loss=0, dup=0, reorder=0, strange=0))

    def __str__(self) -> str:
        found = self.verdict
        return (
            f"{self.name}: {self.rounds} rounds, {self.reshards} reshards, {self.kills} kills at "
            f"{len(self.where)} places, {found.rows} rows, LOSS {found.loss}, DUP {found.dup}, "
            f"REORDER {found.reorder}"
        )
