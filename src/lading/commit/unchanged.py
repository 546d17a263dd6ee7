"""Whether a table still is what an operator looked at."""

from __future__ import annotations

from lading.commit.protocols import Bills
from lading.errors import JobChangedError
from lading.model.bill import Bill, BillKind, Head
from lading.model.job import Job


def check_unchanged(job: Job, bills: Bills, base: Bill, seen: Head) -> None:
    """Raise JobChangedError unless nothing but takeovers, which change nothing, came after the head that was seen.

    A commit may be on its way while somebody looks: it is not seen, and it lands before the next takeover or never.
    """
    bill = base
    while bill.head != seen:
        if bill.kind is not BillKind.TAKEOVER or bill.continues is None or bill.seq <= seen.seq:
            raise _changed(job, bill, seen)
        bill = bills.read(job.job_id, bill.continues)


def _changed(job: Job, bill: Bill, seen: Head) -> JobChangedError:
    what = f"has loaded {bill.tally.rows.total} rows" if bill.kind is BillKind.LOAD else "was changed"
    msg = f"Job {job.name} {what} since it was looked at"
    return JobChangedError(
        msg,
        left="Nothing was changed.",
        todo="Look again with EXPLAIN ALTER, and repeat the statement.",
        job_id=job.job_id,
        seen=seen.seq,
        found=bill.seq,
    )
