"""Bad rows of a job, from the quarantine files that its bills name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from lading.errors import HeadLostError
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.pipeline.quarantine import read_quarantine, read_quarantine_object
from lading.service.installation import Installation
from lading.service.views.build import redacted
from lading.service.views.records import ErrorRow
from lading.storage.store import ObjectStore
from lading.tables.bills import quarantine_folder


def read_error_rows(lading: Installation, record: JobRecord) -> Iterator[ErrorRow]:
    """Bad rows, those of the newest bill first."""
    folder = lading.home.quarantine(record.job_id)
    job_id = record.job_id
    for bill, objects in _bills_with_errors(lading, record):
        # A bill lies beside the table, where others may write; only what this job quarantined is opened.
        ours = [path for path in bill.quarantine if _is_inside(path, folder)]
        beside = [path for path in bill.quarantine if _is_inside(path, f"{objects.uri}/{quarantine_folder(job_id)}")]
        for path in set(bill.quarantine) - set(ours) - set(beside):
            reason = "the quarantine file is not in this home"
            yield ErrorRow(seq=bill.seq, file=redacted(path), row=0, reason=reason, raw="")
        keys = [path.removeprefix(f"{objects.uri}/") for path in beside]
        for row in chain(read_quarantine(ours), *(read_quarantine_object(objects, key) for key in keys)):
            yield ErrorRow(
                seq=bill.seq,
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


def _is_inside(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/") and ".." not in path.split("/")
