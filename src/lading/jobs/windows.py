"""Bad rows of a routine load, counted over a window of batches."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from lading.jobs.pausing import pause
from lading.jobs.reasons import Reason, ReasonCode
from lading.jobs.record import JobRecord, JobState
from lading.model.tally import RowCounts


def check_window(record: JobRecord, at: datetime) -> JobRecord:
    """PAUSED when there are more than the window may have; a window that is full ends."""
    limits, rows = record.window, record.window_rows
    if limits is None or record.state is not JobState.RUNNING:
        return record
    if rows.error > limits.max_errors or rows.error > limits.max_ratio * rows.total:
        message = (
            f"current error rows is more than max_error_number or the max_filter_ratio is more than the value set: "
            f"{rows.error} of {rows.total} rows were bad; max_error_number={limits.max_errors}, "
            f"max_filter_ratio={limits.max_ratio}"
        )
        return pause(record, Reason(code=ReasonCode.TOO_MANY_FAILURE_ROWS_ERR, message=message), at)
    return begin_window(record) if rows.total > limits.rows else record


def begin_window(record: JobRecord) -> JobRecord:
    """Count bad rows from here on."""
    return replace(record, window_base=record.totals.rows if record.totals else RowCounts())
