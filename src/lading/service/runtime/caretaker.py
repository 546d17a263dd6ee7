"""Looking after a job's table and the store now and then: by the age of the job in commits, not of this process.

A job that cron starts for one batch each time is looked after as often as one that runs for weeks. The store forgets
what would make every look at it dearer: old entries of the index of bills, and jobs that ended long ago.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

from lading.clock import Clock
from lading.errors import LadingError
from lading.model.bill import Bill, BillKind
from lading.store.protocols import MetadataStore
from lading.tables.base import LakeTable
from lading.tables.maintenance import CarePolicy

KEPT_BILLS = 20_000
"""Entries of the index for each job. The bills themselves are beside the table, and `verify` reads those."""
KEPT_ENDED = timedelta(days=30)
"""How long SHOW ALL and the console know a job that has ended."""


class Caretaker:
    """For one job."""

    def __init__(self, policy: CarePolicy, clock: Clock, store: MetadataStore) -> None:
        self._policy = policy
        self._store = store
        self._clock = clock
        self._log = logging.getLogger("lading.jobs")
        self._asked_at = 0
        """The seq at which it was last asked whether the table is due."""

    def opened(self, bill: Bill) -> None:
        """The job was opened. A commit that took it over counts."""
        before = bill.replaces if bill.kind is BillKind.TAKEOVER else None
        self._asked_at = before.seq if before is not None else bill.seq

    def committed(self, table: LakeTable, bill: Bill, needs_from: int | None = None) -> None:
        """A batch was committed: look after the table when it is due.

        Bills from commit `needs_from` on are still needed, with their bad rows.
        """
        every, before, self._asked_at = self._policy.every_commits, self._asked_at, bill.seq
        if bill.seq // every == before // every:
            return
        policy = self._policy
        if needs_from is not None:
            policy = replace(policy, keep_commits=max(policy.keep_commits, bill.seq - needs_from + 1))
        try:
            report = table.look_after(bill.job_id, policy, self._clock.now())
        except LadingError as error:
            # The rows are committed; what was not cleaned up now is next time.
            self._log.warning("the table could not be looked after: %s", error)
        else:
            if report.remark:
                self._log.warning("history of the table was kept: %s", report.remark)
        self._store.trim_bills(bill.job_id, keep=KEPT_BILLS)
        forget_ended(self._store, self._clock)


def forget_ended(store: MetadataStore, clock: Clock) -> None:
    """Forget jobs that ended long ago. Their tables and bills stay."""
    store.forget_jobs_ended_before(clock.now() - KEPT_ENDED)
