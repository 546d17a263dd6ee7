"""How a job was before its last edit, as bills and the audit tell."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from lading.errors import HeadLostError, JobStateError
from lading.jobs.record import JobRecord
from lading.model.bill import Bill, BillKind
from lading.model.moves import PartitionMove
from lading.model.positions import Positions
from lading.service.edits.rewritten import find_line
from lading.service.installation import Installation
from lading.service.runtime.interrupted import last_change
from lading.service.session import Session
from lading.sources.kind import SourceKind
from lading.store.records import AuditEntry

EDITS = ("ALTER", "UNDO ALTER")
"""What the audit calls them."""


def last_edit(entries: Sequence[AuditEntry]) -> AuditEntry | None:
    """The newest edit among entries of the audit, which are newest first."""
    return next((found for found in entries if found.action in EDITS), None)


def _lineage(lading: Installation, record: JobRecord) -> Iterator[Bill]:
    """The bills of a job as far as they are kept, newest first, each read when it is wanted."""
    table = lading.open_target(record)
    head = table.read_head_unchecked(record.job_id)
    while head is not None:
        try:
            bill = table.bills.read(record.job_id, head)
        except HeadLostError:
            return
        yield bill
        head = bill.continues


def name_of(bill: Bill) -> str:
    """The head of a bill, as the audit names it."""
    return bill.head.bill_name.removesuffix(".json")


def cut_off_edit(lading: Installation, record: JobRecord, saved: Collection[str]) -> Bill | None:
    """The last change, when it moved the position and never came into the record and the audit."""
    newest = next(_lineage(lading, record), None)
    edited = last_change(lading.open_target(record).bills, newest) if newest is not None else None
    return edited if edited is not None and name_of(edited) not in saved else None


def bills_since_commit(session: Session, record: JobRecord, seq: int) -> list[Bill]:
    """The newest bill and others down to one of the commits that made the job what it is. Raises JobStateError."""
    line = find_line(_lineage(session.lading, record), seq)
    if any(bill.seq == seq for bill in line):
        return line
    known = f"Bills are kept of the commits {line[-1].seq} to {line[0].seq}." if line else "It has none yet."
    msg = f"There is no commit {seq} of job {record.full_name} to go back to"
    raise JobStateError(msg, left="Nothing was changed.", todo=known, job_id=record.job_id)


def bill_before(session: Session, record: JobRecord, head: str, saved: Collection[str]) -> tuple[Bill, Bill]:
    """The newest bill, and that of before the edit. Raises JobStateError when rows were loaded since.

    Edits before it that were cut off never became part of the definition that is put back: they are passed over.
    """
    newest, edited, loads = None, None, list[Bill]()
    for bill in _lineage(session.lading, record):
        newest = newest or bill
        if edited is not None and not _is_passed_over(bill, saved):
            _refuse_loaded(record, loads)
            return newest, bill
        if edited is None and name_of(bill) == head:
            edited = bill
        elif edited is None and bill.kind in (BillKind.LOAD, BillKind.REPLAY):
            loads.append(bill)
    msg = f"The bill of the last change of job {record.full_name} is gone"
    raise JobStateError(msg, left="Nothing was changed.", todo="Move the position with ALTER.", job_id=record.job_id)


def _is_passed_over(bill: Bill, saved: Collection[str]) -> bool:
    is_edit = bill.kind is BillKind.EDIT and not bill.accepts_rollback
    return bill.kind is BillKind.TAKEOVER or (is_edit and name_of(bill) not in saved)


def _refuse_loaded(record: JobRecord, loads: Sequence[Bill]) -> None:
    if not loads:
        return
    rows = sum(bill.tally.rows.total for bill in loads)
    msg = (
        f"The last change of job {record.full_name} cannot be taken back: {rows} rows were read in {len(loads)} "
        "commits since"
    )
    todo = "Move the position with ALTER; EXPLAIN ALTER says what would be loaded again or skipped."
    raise JobStateError(msg, left="Nothing was changed.", todo=todo, job_id=record.job_id, rows=rows)


def moves_back(kind: SourceKind, now: Positions, before: Positions) -> tuple[PartitionMove, ...]:
    """The way to where it was, partition by partition.

    How much that loads again or skips is not told: what lies between may have been loaded before the change, or not.
    """
    found = []
    for name, state in before.partitions.items():
        there = now.partitions.get(name)
        if there == state:
            continue
        move = PartitionMove(
            partition=name,
            start=there.at if there is not None else "",
            end=state.at,
            direction=kind.way(there, state) if there is not None else "NEW SOURCE",
            remark="as it was before the change",
        )
        found.append(move)
    return tuple(found)
