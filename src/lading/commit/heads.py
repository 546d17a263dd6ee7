"""Reading the head of a table: an answer may be an old one, and is asked for again before it is believed."""

from __future__ import annotations

from lading.commit.protocols import Bills, Table
from lading.commit.rollback import check_not_rolled_back
from lading.errors import RolledBackError
from lading.ids import JobId
from lading.model.bill import Head
from lading.model.job import Job

MAX_STALE_READS = 3


def read_start_head(job: Job, table: Table, bills: Bills, last_seen: Head | None) -> Head | None:
    """The head to start from. That bills prove a higher one may also mean that the answer was an old one."""
    for left in range(MAX_STALE_READS, -1, -1):
        head = read_head_since(table, job.job_id, last_seen)
        seq = head.seq if head else -1
        above = [bills.read(job.job_id, other) for other in bills.heads(job.job_id) if other.seq > seq]
        try:
            check_not_rolled_back(job, head, last_seen, above)
        except RolledBackError:
            if not left:
                raise
        else:
            break
    return head


def read_head_since(table: Table, job_id: JobId, seen: Head | None) -> Head | None:
    """The head. An answer that is older than what was seen is asked for again before it is believed."""
    head = table.read_head(job_id)
    for _ in range(MAX_STALE_READS):
        if seen is None or (head is not None and (head == seen or head.seq > seen.seq)):
            break
        head = table.read_head(job_id)
    return head
