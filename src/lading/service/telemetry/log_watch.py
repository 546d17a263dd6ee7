"""What jobs do, in the logs. Apart from how logs look: every command sets up logs, and few have jobs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from lading.ids import JobId
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.model.table import ColumnChange
from lading.status.outcomes import Outcome


class LogWatch:
    """Writes down what jobs do. Steps are for metrics; here they would only be noise."""

    def __init__(self) -> None:
        self._log = logging.getLogger("lading.jobs")
        self._left_out: dict[JobId, dict[str, int]] = {}
        """What was said last, so that it is said again only when it changes."""

    def step(self, record: JobRecord, step: str, seconds: float) -> None:
        pass

    def committed(self, record: JobRecord, bill: Bill) -> None:
        rows = bill.tally.rows
        marks = {"job": str(record.full_name), "seq": bill.seq, "batch": f"{bill.token:016x}"}
        self._log.info("committed %d rows, %d bad, %d files", rows.loaded, rows.error, len(bill.files), extra=marks)

    def batch_ended(self, record: JobRecord, outcome: Outcome, seconds: float) -> None:
        if outcome in ("committed", "empty"):
            return
        reason = record.reason.message if record.reason else record.last_error
        self._log.warning("batch %s after %.1f s: %s", outcome, seconds, reason, extra={"job": str(record.full_name)})

    def fenced(self, record: JobRecord) -> None:
        self._log.error("stopped: its table was changed by another", extra={"job": str(record.full_name)})

    def unrecorded(self, record: JobRecord) -> None:
        pass  # The scheduler, which meets the error, logs it.

    def auto_resumed(self, record: JobRecord) -> None:
        self._log.info("resumed automatically", extra={"job": str(record.full_name)})

    def evolved(self, record: JobRecord, changes: Sequence[ColumnChange]) -> None:
        told = ", ".join(map(str, changes))
        self._log.warning("changed table %s: %s", record.target, told, extra={"job": str(record.full_name)})

    def files_behind(self, record: JobRecord, files: Mapping[str, int]) -> None:
        pass

    def files_left_out(self, record: JobRecord, files: Mapping[str, int], remark: str) -> None:
        left_out = {reason: count for reason, count in files.items() if count}
        if left_out and self._left_out.get(record.job_id) != left_out:
            self._log.warning("files are not loaded: %s", remark, extra={"job": str(record.full_name)})
        self._left_out[record.job_id] = left_out
