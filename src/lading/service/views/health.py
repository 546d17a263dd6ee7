"""How a job is doing, in one word: decided here for every face, so that API, SHOW, command line and console agree.

A state says what a job was told to do; its health, whether somebody has to look.
"""

from __future__ import annotations

from collections.abc import Mapping

from lading.jobs.batches import NOT_LOADED
from lading.jobs.reasons import RECOVERED, ReasonCode
from lading.jobs.record import JobRecord, JobState
from lading.service.views.records import Health, HealthView
from lading.status.lag import Lag, LagUnit
from lading.status.rates import Rates

FAR_BEHIND_S = 60.0
"""A job that is further behind, or needs longer at its present pace, is catching up."""


def health_of(
    record: JobRecord, *, lag: Lag | None = None, rates: Rates | None = None, left_out: Mapping[str, int] | None = None
) -> HealthView:
    """The gravest that is true. `left_out` are files that it will not load, by reason."""
    if record.state in (JobState.STOPPED, JobState.FINISHED):
        return HealthView(state=Health.ENDED)
    if record.state is JobState.CANCELLED or _needs_review(record):
        note = "recovered" if _is_recovered(record) else ""
        return HealthView(state=Health.NEEDS_REVIEW, tries=_tries(record), note=note)
    if tries := _tries(record):
        return HealthView(state=Health.FAILING, tries=tries, note=_times(tries), next_try_at=record.auto_resume.next_at)
    if record.state is JobState.PAUSED:
        return HealthView(state=Health.PAUSED, note="by a user")
    files = sum((left_out or {}).values())
    if files or NOT_LOADED in record.runtime_message:
        return HealthView(state=Health.LATE_FILES, note=f"{_files(files)} not loaded" if files else "")
    if record.state is JobState.RUNNING and lag is not None and is_far_behind(lag, rates):
        return HealthView(state=Health.CATCHING_UP, note="")
    note = "" if record.state is JobState.RUNNING else "waits to be opened"
    return HealthView(state=Health.HEALTHY, note=note)


def is_far_behind(lag: Lag, rates: Rates | None) -> bool:
    """More than a minute: as the source tells it, or at the pace of the last minutes."""
    behind = lag.behind
    if not behind:
        return False
    if lag.unit is LagUnit.MILLISECONDS:
        return behind > FAR_BEHIND_S * 1000
    pace = 0.0
    if rates is not None:
        pace = rates.files_per_s if lag.unit is LagUnit.FILES else rates.rows_per_s
    return behind > FAR_BEHIND_S * pace


def _needs_review(record: JobRecord) -> bool:
    reason = record.reason
    if record.state is not JobState.PAUSED or reason is None:
        return False
    by_user = reason.code is ReasonCode.MANUAL_PAUSE_ERR and not _is_recovered(record)
    return reason.needs_attention and not by_user


def _is_recovered(record: JobRecord) -> bool:
    return record.reason is not None and record.reason.message.startswith(RECOVERED)


def _tries(record: JobRecord) -> int:
    """What failed in a row, also attempts of a batch that is tried again. 0 for what a user paused."""
    if record.reason is not None and record.reason.code is ReasonCode.MANUAL_PAUSE_ERR:
        return 0
    task = record.task
    attempts = task.attempt - 1 if task is not None else 0
    # A job that is paused again has failed once more than it was resumed.
    again = 1 if record.state is JobState.PAUSED else 0
    failed = max(record.failures + attempts, record.auto_resume.tries + again)
    # A batch that was cut because it killed its worker is no further attempt; a pause has one cause at least.
    has_trouble = (task is not None and bool(task.error)) or record.state is JobState.PAUSED
    return max(failed, 1) if has_trouble else failed


def _times(tries: int) -> str:
    return "1 try failed" if tries == 1 else f"{tries:,} tries failed"


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number:,} files"
