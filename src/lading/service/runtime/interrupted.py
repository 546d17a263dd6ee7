"""Edits that were cut off: the position was moved, and the record of the job does not know.

The commit of an edit and the record of the job are two steps, and a process may die between them. The bill of the
edit has the definition that the position belongs to, so that nobody goes on from there with another one.
"""

from __future__ import annotations

from lading.commit.protocols import Bills
from lading.errors import HeadLostError, JobStateError
from lading.ids import JobId
from lading.model.bill import Bill, BillKind, Head
from lading.model.job import Job
from lading.store.protocols import MetadataStore

BEGUN_PREFIX = "edit/"
"""Settings of the store that have the edits which were begun, by the job."""


def drop_begun(store: MetadataStore, job_id: JobId) -> None:
    """An edit is in record and audit, or its commit certainly did not land."""
    store.drop_setting(BEGUN_PREFIX + job_id)


def check_not_cut_off(job: Job, bills: Bills, newest: Bill, last_seen: Head | None, *, is_begun: bool = False) -> None:
    """Raise JobStateError when the head is an edit that the record does not know and that has another definition.

    `last_seen` is the newest head of the record: every edit that was saved is known to it. `is_begun`: the store knows
    of an edit that was not finished, so that one with the same definition is not overlooked either.
    """
    edited = last_change(bills, newest)
    if edited is None or (edited.definition == job.definition and not is_begun):
        return
    if last_seen is not None and last_seen.seq >= edited.seq:
        return
    msg = f"An ALTER of job {job.name} was cut off between its commit and its record ({edited.reason})"
    raise JobStateError(
        msg,
        left="The position has moved and the definition is the old one; nothing was read.",
        todo="RESUME it to finish the ALTER; if that is refused, run the same ALTER again. UNDO ALTER takes it back.",
        job_id=job.job_id,
        seq=edited.seq,
    )


def last_change(bills: Bills, newest: Bill) -> Bill | None:
    """The edit that nothing but takeovers came after; None when it was something else."""
    bill = newest
    while bill.kind is BillKind.TAKEOVER and bill.continues is not None:
        try:
            bill = bills.read(bill.job_id, bill.continues)
        except HeadLostError:
            return None
    return bill if bill.kind is BillKind.EDIT and not bill.accepts_rollback else None
