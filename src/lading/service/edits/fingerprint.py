"""What somebody looked at before they changed it: a job with one head and one definition."""

from __future__ import annotations

import json
from hashlib import sha256

from lading.errors import JobChangedError
from lading.jobs.record import JobRecord
from lading.model.bill import Head

_LOOK_AGAIN = "Look again with EXPLAIN ALTER, and repeat the statement."


def mark_of(record: JobRecord, head: Head | None, undoes: str = "") -> str:
    """Stands for what was looked at: another head, definition or change to take back has another mark."""
    parts = (head.bill_name if head is not None else "", record.definition, record.secrets_slot, undoes)
    return sha256(json.dumps(parts).encode()).hexdigest()[:32]


def changed_since(record: JobRecord, what: str, todo: str = _LOOK_AGAIN) -> JobChangedError:
    """The error of who comes too late."""
    msg = f"Job {record.full_name} {what}"
    return JobChangedError(msg, left="Nothing was changed.", todo=todo, job_id=record.job_id)
