"""Pausing, and resuming without a person."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from lading.jobs.reasons import Failure, Reason, ReasonCode
from lading.jobs.record import AutoResume, JobRecord, JobState

MAX_DELAY_S = 300
CALM = timedelta(minutes=10)
"""A routine load that was resumed so long ago counts its tries from zero."""


def resume_delay_s(tries: int) -> int:
    """How long to wait after a pause, when so many tries were made: 0, 20, 40, 80, 160, 300, 300, … seconds."""
    return 0 if tries == 0 else min(10 * 2 ** min(tries, 10), MAX_DELAY_S)


def pause(record: JobRecord, reason: Reason, at: datetime) -> JobRecord:
    """PAUSED for this reason. A job that is paused already keeps its reason, unless the new one is graver."""
    if record.is_final:
        return record
    if record.reason is not None and (record.reason.needs_attention or not reason.needs_attention):
        return record
    tries, resumed_at = _tries(record, at), record.auto_resume.resumed_at
    given = _give_up(record, reason)
    next_at = None if given.needs_attention else at + timedelta(seconds=resume_delay_s(tries))
    return replace(
        record,
        state=JobState.PAUSED,
        reason=given,
        paused_at=record.paused_at or at,
        auto_resume=AutoResume(tries=tries, next_at=next_at, resumed_at=resumed_at),
        runtime_message="",
    )


def _tries(record: JobRecord, at: datetime) -> int:
    resumed_at = record.auto_resume.resumed_at
    if record.dialect.most_resumes is None and resumed_at is not None and at - resumed_at >= CALM:
        return 0
    return record.auto_resume.tries


def _give_up(record: JobRecord, reason: Reason) -> Reason:
    tries, most = record.auto_resume.tries, record.dialect.most_resumes
    if most is None or reason.needs_attention or tries < most:
        return reason
    message = f"Auto resume failed after {tries} attempts: {reason.message}"
    return Reason(code=ReasonCode.CANNOT_RESUME_ERR, message=message)


def is_due(record: JobRecord, now: datetime) -> bool:
    """Whether a paused job is to be tried again now. Never while its last task is not settled."""
    if record.state is not JobState.PAUSED or needs_a_person(record):
        return False
    return record.task is None and wait_to_resume_s(record, now) <= 0


def needs_a_person(record: JobRecord) -> bool:
    """Whether a job is paused until somebody resumes it."""
    return record.state is JobState.PAUSED and (record.reason is None or record.reason.needs_attention)


def is_stuck(record: JobRecord) -> bool:
    """Whether it is, and nobody asked for that."""
    by_hand = record.reason is not None and record.reason.code is ReasonCode.MANUAL_PAUSE_ERR
    return needs_a_person(record) and not by_hand


def next_try(record: JobRecord, now: datetime) -> datetime | None:
    """When a paused job is tried again, now at the earliest. None: it is not paused, or waits for a person."""
    if record.state is not JobState.PAUSED or needs_a_person(record):
        return None
    return max(now, record.auto_resume.next_at or now)


def wait_to_resume_s(record: JobRecord, now: datetime) -> float:
    """How long until a paused job is tried again. No wait is longer than the longest: what would be was written before
    the clock was set back."""
    next_at = record.auto_resume.next_at
    wait_s = 0.0 if next_at is None else (next_at - now).total_seconds()
    return max(0.0, wait_s) if wait_s <= MAX_DELAY_S else 0.0


def wait_to_be_opened(record: JobRecord, auto_resume: AutoResume, message: str = "") -> JobRecord:
    """PENDING or NEED_SCHEDULE, with nothing left of the pause."""
    return replace(
        record,
        state=record.dialect.waiting,
        reason=None,
        paused_at=None,
        auto_resume=auto_resume,
        runtime_message=message,
    )


def reason_to_pause(record: JobRecord, failure: Failure) -> Reason:
    """Routine loads have a word of their own for tasks that failed too often."""
    is_vague = failure.reason.code is ReasonCode.INTERNAL_ERR and failure.retry
    if is_vague and not record.dialect.retries_tasks:
        return replace(failure.reason, code=ReasonCode.TASKS_ABORT_ERR)
    return failure.reason
