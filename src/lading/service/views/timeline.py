"""What happened to a job, in one line of time: commits, failures, tries, pauses and what people changed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from lading.jobs.record import FailedTry
from lading.jobs.tasks import TaskState
from lading.service.views.build import redacted
from lading.service.views.changes import change_words
from lading.service.views.records import AuditView, BatchView, BillView, HappenedView, JobView

_BY_HAND = ("PAUSE", "RESUME")
_QUIET = "load"
"""The kind of the commits that are told together when nothing lies between them."""


def timeline_of(
    job: JobView,
    bills: Sequence[BillView],
    batches: Sequence[BatchView],
    audit: Sequence[AuditView],
    tries: Sequence[HappenedView] = (),
) -> list[HappenedView]:
    """Newest first. Commits that load rows, one after the other with nothing between them, are one line."""
    told = [_failure(batch) for batch in batches if batch.state == TaskState.FAILED.value]
    reason, paused_at = job.reason, job.paused_at
    if job.state == "PAUSED" and paused_at is not None and reason is not None and reason.code != "MANUAL_PAUSE_ERR":
        what = f"{reason.code}: {job.problem.sentence if job.problem else reason.message}"
        told.append(HappenedView(at=paused_at, since=paused_at, kind="pause", what=what))
    # The try that ended its batch, or paused the job, is told as that.
    ends = {event.at for event in told}
    found = [*told, *(each for each in tries if each.at not in ends)]
    found += [_commit(bill) for bill in bills]
    found += [_change(entry) for entry in audit]
    return _grouped(found)


def retry_of(tried: FailedTry) -> HappenedView:
    """Something that failed, and was tried again."""
    return HappenedView(at=tried.at, since=tried.at, kind="retry", what=redacted(tried.message))


def _grouped(found: list[HappenedView]) -> list[HappenedView]:
    found.sort(key=lambda event: event.at, reverse=True)
    told: list[HappenedView] = []
    for is_quiet, group in groupby(found, key=lambda event: event.kind == "commit" and event.what == _QUIET):
        events = list(group)
        told += [_together(events)] if is_quiet else events
    return told


def _commit(bill: BillView) -> HappenedView:
    rows = bill.tally.rows
    return HappenedView(
        at=bill.billed_at,
        since=bill.billed_at,
        kind="commit",
        what=bill.kind,
        first_seq=bill.seq,
        last_seq=bill.seq,
        rows=rows.loaded,
        bad_rows=rows.error,
    )


def ended_at(batch: BatchView) -> datetime:
    """When a batch ended; of one that has not, when it began."""
    return batch.finished_at or batch.started_at or batch.created_at


def _failure(batch: BatchView) -> HappenedView:
    ended = ended_at(batch)
    return HappenedView(at=ended, since=ended, kind="failure", what=batch.error or batch.first_error)


def _change(entry: AuditView) -> HappenedView:
    kind = "pause" if entry.action == "PAUSE" else "resume" if entry.action in _BY_HAND else "edit"
    return HappenedView(
        at=entry.at, since=entry.at, kind=kind, what=change_words(entry) or entry.action, user=entry.user
    )


def _together(commits: Sequence[HappenedView]) -> HappenedView:
    newest, oldest = commits[0], commits[-1]
    return HappenedView(
        at=newest.at,
        since=oldest.since,
        kind="commit",
        what=newest.what,
        first_seq=oldest.first_seq,
        last_seq=newest.last_seq,
        rows=sum(commit.rows or 0 for commit in commits),
        bad_rows=sum(commit.bad_rows or 0 for commit in commits),
    )
