"""Telling that somebody restored an older version of the table."""

from __future__ import annotations

from lading.errors import RolledBackError
from lading.model.bill import Head
from lading.model.job import Job


def check_not_rolled_back(job: Job, head: Head | None, last_seen: Head | None, highest_bill: int | None) -> None:
    """Compare the head with what is remembered elsewhere. "Nothing new" is never the answer to a head that went back.

    A bill with seq n + 2 is written only by an incarnation that saw n + 1 land; so a bill two or more above the head
    proves that the table once was further. A bill one above the head may be a commit that never happened.
    """
    seq = head.seq if head else -1
    remembered = max(last_seen.seq if last_seen else -1, (highest_bill if highest_bill is not None else -1) - 1)
    if seq < remembered:
        raise rolled_back(job, head, remembered)


def rolled_back(job: Job, head: Head | None, once: int) -> RolledBackError:
    """The error, with what to do."""
    now = f"seq {head.seq}" if head else "no head at all"
    msg = f"The table was put back: job {job.name} ({job.job_id}) had committed seq {once}, and the table has {now}"
    return RolledBackError(
        msg,
        left="Nothing was read or written.",
        todo="If that was meant, accept the rollback and choose the position to go on from; else restore the table.",
        job_id=job.job_id,
        once=once,
    )
