"""Who changed what, when and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lading.jobs.events import Event
from lading.jobs.record import JobRecord
from lading.service.session import Session
from lading.sql.syntax.masking import mask
from lading.sql.syntax.render import render
from lading.store.records import AuditEntry

if TYPE_CHECKING:
    from lading.sql.statements.jobs import Statement


def audit(
    session: Session,
    record: JobRecord,
    action: str,
    *,
    statement: Statement | None = None,
    facts: Mapping[str, str] | None = None,
) -> AuditEntry:
    """An entry of the audit. The statement is kept with its secrets masked."""
    return AuditEntry(
        at=session.lading.clock.now(),
        user=session.user,
        action=action,
        job_id=record.job_id,
        subject=str(record.full_name),
        statement=render(mask(statement)) if statement is not None else "",
        facts=dict(facts or {}),
    )


def apply(session: Session, record: JobRecord, event: Event, entry: AuditEntry) -> JobRecord:
    """Change a job and write down who did it, in one step."""
    return session.lading.runner(record.job_id).apply(event, entry)


def compact(value: object) -> str:
    """JSON for facts."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
