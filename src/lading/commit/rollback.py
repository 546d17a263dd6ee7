"""Telling that somebody restored an older version of the table."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from lading.commit.protocols import Bills
from lading.errors import CommitRefusedError, HeadLostError, RecordError, RolledBackError
from lading.ids import JobId
from lading.model.bill import Bill, Head
from lading.model.job import Job

ADVICE = (
    "Look with SHOW ROLLBACK OF JOB (or OF ROUTINE LOAD FOR) its name. If it was meant, ACCEPT ROLLBACK OF the same, "
    "KEEP POSITION or LOAD AGAIN; else restore the table."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackSight:
    """What an operator saw of a table that was rolled back, and says is meant."""

    head: Head | None
    """The head that the table has, whether or not it went back with the rows."""
    restored: Head | None
    """The newest commit whose rows the table has. None: it has none of the job, and its totals begin again."""
    goes_on: Head
    """The commit whose positions the job goes on from: `restored` loads again what was taken away, the newest one does
    not."""
    version: int | None
    """The version of the table at that moment."""


def check_not_rolled_back(job: Job, head: Head | None, last_seen: Head | None, above: Iterable[Bill]) -> None:
    """Compare the head with what is remembered elsewhere. "Nothing new" is never the answer to a head that went back.

    `above` are the bills with a seq above the head's. Such a bill may be of a commit that never happened; but it was
    written by somebody who had seen the head it replaces land, so that head is proof of where the table once was.
    """
    once = newest_proved(head, last_seen, above)
    if once != head and once is not None:
        raise rolled_back(job, head, once.seq)


def newest_proved(head: Head | None, last_seen: Head | None, above: Iterable[Bill]) -> Head | None:
    """The newest commit that has certainly landed: the head, or one that the table has lost together with its head."""
    proofs = [last_seen, *(bill.replaces for bill in above)]
    once = max((proof for proof in proofs if proof is not None), default=None)
    return once if once is not None and once.seq > (head.seq if head else -1) else head


def accounts_for(bills: Bills, goes_on: Bill, restored: Head) -> bool:
    """Whether the lineage of a bill has the commit that the table ends with.

    It has not, when a table was put back twice, the second time to a version that the first rollback had taken away:
    the table then holds rows that this bill knows nothing of. A bill that somebody removed in between proves nothing.
    """
    bill = goes_on
    while bill.seq > restored.seq and bill.continues is not None:
        try:
            bill = bills.read(bill.job_id, bill.continues)
        except HeadLostError:
            return True
    return bill.head == restored


def check_accounts_for(job: Job, bills: Bills, goes_on: Bill, restored: Head) -> None:
    """A job does not go on from positions that are behind the rows of its table. Raises CommitRefusedError."""
    if not accounts_for(bills, goes_on, restored):
        msg = (
            f"KEEP POSITION is not possible for job {job.name}: the table has the rows of seq {restored.seq}, which an "
            f"earlier rollback had taken away, and seq {goes_on.seq} goes on as if they were gone"
        )
        todo = "Use LOAD AGAIN: it goes on behind the rows that the table has, and loads none of them twice."
        raise CommitRefusedError(msg, left="Nothing was changed.", todo=todo, job_id=job.job_id)


def epoch_above(bills: Bills, job_id: JobId, highest: int) -> int:
    """An epoch that no bill has: the newest have the highest, also those that a rollback took away with their heads."""
    epochs = [0]
    for head in bills.heads(job_id):
        if head.seq == highest:
            with suppress(HeadLostError, RecordError):  # One that never landed may be half a file, and has no epoch.
                epochs.append(bills.read(job_id, head).epoch + 1)
    return max(epochs)


def rolled_back(job: Job, head: Head | None, once: int) -> RolledBackError:
    """The error, with what to do."""
    now = f"the table is at seq {head.seq}" if head else "the table has no head"
    msg = f"The table was rolled back: job {job.name} ({job.job_id}) had committed seq {once}, {now}"
    return RolledBackError(
        msg,
        left="Nothing was read or written.",
        todo=ADVICE,
        job_id=job.job_id,
        once=once,
    )
