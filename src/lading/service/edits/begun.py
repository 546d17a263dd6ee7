"""Edits that have moved a position and are not yet in the record: kept before the commit, finished after a crash.

What an edit will write into record and audit is kept in the store before its commit. A process that dies after the
commit leaves it there. It is finished at the next start, or at the latest before the job is resumed or changed again.
Whether the commit landed is asked of the table: a bill of an edit that the audit does not name.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from lading.errors import JobNotFoundError, LadingError
from lading.ids import JobId
from lading.jobs.events import Altered
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.service.edits.history import cut_off_edit
from lading.service.installation import Installation
from lading.service.runtime.interrupted import BEGUN_PREFIX, drop_begun
from lading.store.bodies import parse_body, render_body
from lading.store.records import AuditEntry

if TYPE_CHECKING:
    from lading.store.protocols import MetadataStore

_LATE = "the process ended before this was written down; it was finished at the next start"
_LOG = logging.getLogger("lading.jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunEdit:
    """What is left to do when the commit has landed."""

    event: Altered
    entry: AuditEntry
    reason: str
    """As the bill has it."""
    at: datetime
    """Before the commit."""


def keep_begun(store: MetadataStore, job_id: JobId, begun: BegunEdit) -> None:
    """Before the commit. Dies here: no bill fits it, and nothing comes of it."""
    store.write_setting(BEGUN_PREFIX + job_id, render_body(begun))


def settled(lading: Installation, record: JobRecord) -> JobRecord:
    """The record after an edit that was cut off has been finished, if there is one and it landed."""
    return lading.runner(record.job_id).record() if finish_begun(lading, record) else record


def finish_begun(lading: Installation, record: JobRecord) -> bool:
    """Write down an edit whose commit landed. False: there is none, or the table does not have it."""
    with lading.job_locks.hold(record.job_id):
        text = lading.store.read_setting(BEGUN_PREFIX + record.job_id)
        if text is None:
            return False
        begun = parse_body(BegunEdit, text, where=f"An edit of job {record.full_name}")
        bill = _landed(lading, record, begun)
        if bill is None:
            return False
        facts = {**begun.entry.facts, **head_facts(bill), "finished": _LATE}
        shown = _shown_or_none(lading, record, begun.event, bill)
        event = replace(begun.event, moved=bill.head, current_offset=shown)
        lading.runner(record.job_id).apply(event, replace(begun.entry, facts=facts))
        # Dies before: the audit names the bill, so it is not taken for one that was cut off.
        drop_begun(lading.store, record.job_id)
    _LOG.warning("an ALTER was cut off and is finished now", extra={"job": str(record.full_name), "seq": bill.seq})
    return True


def may_have_landed(lading: Installation, record: JobRecord, begun: BegunEdit) -> bool:
    """Whether the table has the commit of an edit that failed somewhere, or cannot be asked."""
    try:
        return _landed(lading, record, begun) is not None
    except LadingError:
        return True


def _landed(lading: Installation, record: JobRecord, begun: BegunEdit) -> Bill | None:
    saved = {entry.facts.get("head", "") for entry in lading.store.list_audit(job_id=record.job_id)}
    bill = cut_off_edit(lading, record, saved)
    return None if bill is None or bill.reason != begun.reason or bill.billed_at < begun.at else bill


def finish_all(lading: Installation) -> None:
    """At the start of a service. A table that cannot be asked now is asked when the job is resumed or changed."""
    for key in [name for name in lading.store.list_settings() if name.startswith(BEGUN_PREFIX)]:
        try:
            record = lading.store.load_job_by_id(JobId(key.removeprefix(BEGUN_PREFIX))).record
            if not record.is_final:
                finish_begun(lading, record)
        except JobNotFoundError:
            lading.store.drop_setting(key)
        except LadingError as error:
            _LOG.warning("an ALTER was cut off, and its table cannot be asked yet: %s", error, extra={"setting": key})


def head_facts(bill: Bill) -> dict[str, str]:
    """How the audit names the commit of an edit."""
    return {"head": bill.head.bill_name.removesuffix(".json"), "epoch": str(bill.epoch)}


def _shown_or_none(lading: Installation, record: JobRecord, event: Altered, bill: Bill) -> str | None:
    changed = replace(
        record,
        definition=event.definition or record.definition,
        spec=event.spec or record.spec,
        properties=event.properties,
        secrets_slot=event.secrets_slot or record.secrets_slot,
    )
    with suppress(LadingError):  # The next run shows it.
        compiled, _ = lading.compile(changed)
        try:
            return compiled.show_position(bill.positions)
        finally:
            compiled.close()
    return None
