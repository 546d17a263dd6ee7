"""Looking after a job's table now and then: by the age of the job in commits, not of this process.

A job that cron starts for one batch each time is looked after as often as one that runs for weeks.
"""

from __future__ import annotations

import logging

from lading.clock import Clock
from lading.errors import LadingError
from lading.model.bill import Bill, BillKind
from lading.tables.base import LakeTable
from lading.tables.care import CarePolicy


class Caretaker:
    """For one job."""

    def __init__(self, policy: CarePolicy, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock
        self._log = logging.getLogger("lading.jobs")
        self._asked_at = 0
        """The seq at which it was last asked whether the table is due."""

    def opened(self, bill: Bill) -> None:
        """The job was opened. A commit that took it over counts."""
        before = bill.replaces if bill.kind is BillKind.TAKEOVER else None
        self._asked_at = before.seq if before is not None else bill.seq

    def committed(self, table: LakeTable, bill: Bill) -> None:
        """A batch was committed: look after the table when it is due."""
        every, before, self._asked_at = self._policy.every_commits, self._asked_at, bill.seq
        if bill.seq // every == before // every:
            return
        try:
            report = table.look_after(bill.job_id, self._policy, self._clock.now())
        except LadingError as error:
            # The rows are committed; what was not cleaned up now is next time.
            self._log.warning("the table could not be looked after: %s", error)
        else:
            if report.remark:
                self._log.warning("history of the table was kept: %s", report.remark)
