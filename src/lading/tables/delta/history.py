"""Which commit of which job each version of a Delta table is."""

from __future__ import annotations

from datetime import UTC, datetime

from lading.ids import JobId, Token
from lading.model.bill import Head
from lading.tables.base import TableVersion
from lading.tables.delta.actions import Entry, seq_app, token_app
from lading.tables.delta.log import LogTail

_PREFIX = seq_app(JobId(""))


def versions_of(tail: LogTail, limit: int) -> list[TableVersion]:
    """The newest versions, as far back as the log is kept."""
    return [_version(number, entry) for number, entry in tail.entries_back(tail.version, limit=limit)]


def _version(number: int, entry: Entry) -> TableVersion:
    at = None if entry.made_ms is None else datetime.fromtimestamp(entry.made_ms / 1000, UTC)
    found = _commit(entry)
    if found is None:
        return TableVersion(name=str(number), at=at, what=entry.operation)
    return TableVersion(name=str(number), at=at, what=entry.operation, job_id=found[0], head=found[1])


def _commit(entry: Entry) -> tuple[JobId, Head] | None:
    for app_id, seq in entry.txns.items():
        job_id = JobId(app_id.removeprefix(_PREFIX))
        if app_id.startswith(_PREFIX) and (token := entry.txns.get(token_app(job_id))) is not None:
            return job_id, Head(seq=seq, token=Token(token))
    return None
