"""The bad rows of a batch that was refused, which no bill names.

They are in the quarantine files of an attempt that came to nothing. Where these are is kept beside the record of the
job, with the head that the batch began from: once anything was committed, they are those of the past, and not shown
any more, also when the process died before it could forget them. The next batch that is refused takes their place.
The files go as those of other attempts do (ADMIN CLEAN ORPHANS).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from lading.errors import BudgetError, LadingError
from lading.ids import JobId
from lading.store.bodies import parse_body, render_body
from lading.store.protocols import MetadataStore

_PREFIX = "refused/"
"""Settings of the store that have them, by the job."""
_LOG = logging.getLogger("lading.jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedBatch:
    """Where its bad rows are."""

    head: str
    """The bill that it would have followed."""
    places: tuple[str, ...]
    at: datetime


def keep_refused(store: MetadataStore, job_id: JobId, error: BudgetError, at: datetime) -> None:
    """Before the record says that the job is paused. Dies before: the batch is staged again, and refused again."""
    head, places = str(error.facts.get("head", "")), tuple(error.facts.get("quarantine", ()))
    if not head:
        return
    try:
        store.write_setting(_PREFIX + job_id, render_body(RefusedBatch(head=head, places=places, at=at)))
    except LadingError as failed:
        # The reason of the refusal is what has to be told; it names the first of the rows.
        _LOG.warning("where the bad rows of a refused batch are could not be written down: %s", failed)


def drop_refused(store: MetadataStore, job_id: JobId) -> None:
    """The job has ended."""
    store.drop_setting(_PREFIX + job_id)


def read_refused(store: MetadataStore, job_id: JobId) -> RefusedBatch | None:
    """The last batch that was refused, whatever came after it."""
    text = store.read_setting(_PREFIX + job_id)
    return None if text is None else parse_body(RefusedBatch, text, where="A refused batch")
