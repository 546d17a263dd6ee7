"""Bad rows of a job, from the quarantine files that its bills name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lading.errors import HeadLostError, TableNotFoundError
from lading.ids import JobId
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.service.installation import Installation
from lading.service.runtime.bad_rows import bad_rows_at
from lading.service.runtime.refused import read_refused
from lading.service.views.build import redacted
from lading.service.views.records import ErrorRow
from lading.storage.store import ObjectStore


def read_error_rows(lading: Installation, record: JobRecord) -> Iterator[ErrorRow]:
    """Bad rows: those of a batch that was refused, then those of commits, of the newest bill first."""
    yield from _refused_rows(lading, record)
    for bill, objects in _bills_with_errors(lading, record):
        yield from _rows(lading, record.job_id, bill.seq, bill.quarantine, objects)


def _refused_rows(lading: Installation, record: JobRecord) -> Iterator[ErrorRow]:
    """All bad rows of the batch that was refused last, as long as nothing was committed since."""
    refused = read_refused(lading.store, record.job_id)
    if refused is None:
        return
    try:
        table = lading.open_target(record)
    except TableNotFoundError:
        return  # There is nothing that they could be loaded into.
    head = table.read_head_unchecked(record.job_id)
    if head is not None and head.bill_name == refused.head:
        yield from _rows(lading, record.job_id, None, refused.places, table.bills.storage)


def _rows(
    lading: Installation, job_id: JobId, seq: int | None, places: Sequence[str], objects: ObjectStore
) -> Iterator[ErrorRow]:
    for row in bad_rows_at(places, job_id, lading.home.quarantine(job_id), objects):
        yield ErrorRow(
            seq=seq,
            file=redacted(str(row.get("file", ""))),
            row=int(str(row.get("row", 0))),
            reason=redacted(str(row.get("reason", ""))),
            raw=redacted(str(row.get("raw", ""))),
        )


def _bills_with_errors(lading: Installation, record: JobRecord) -> Iterator[tuple[Bill, ObjectStore]]:
    table, before = None, None
    while entries := lading.store.list_bills(record.job_id, limit=500, before_seq=before):
        for entry in entries:
            if entry.tally.rows.error or entry.tally.rows.late:
                table = table or lading.open_target(record)
                try:
                    yield table.bills.read(record.job_id, entry.head), table.bills.storage
                except HeadLostError:
                    return  # Older bills than the retention keeps are gone, with their quarantine.
        before = entries[-1].seq
