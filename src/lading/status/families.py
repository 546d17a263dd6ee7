"""Samples of metrics that are derived from records and bills.

They are computed again for every scrape from what the store keeps, so that a restart resets none of them. The number of
jobs with a name of their own is bounded; the rest are added up under `other`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from lading.model.notices import ListeningSummary
from lading.model.state import StateRef
from lading.model.tally import Tally
from lading.status.lag import Lag, LagUnit

JOB_LABELS = ("job_name", "database", "kind")
"""Not `job`: that is the label of what Prometheus scrapes, and it would rename ours."""
OTHER = ("other", "other", "other")
MOST_JOBS = 2000

Labels = tuple[str, ...]
Merge = Callable[[float, float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFigures:
    """What metrics tell of one job."""

    labels: Labels
    """Name, database and kind, or OTHER."""
    state: str
    totals: Tally
    batches: Mapping[str, int] = field(default_factory=dict)
    """Batches in the life of the job, by their end."""
    failures: int = 0
    auto_resume_tries: int = 0
    last_commit_at: datetime | None = None
    lag: Lag | None = None
    watermark_us: int | None = None
    kept: StateRef | None = None
    listening: ListeningSummary | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Files that are not going to be loaded, by the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric with all its samples."""

    name: str
    """Without the `_total` of counters."""
    kind: Literal["counter", "gauge"]
    help: str
    labels: Labels
    samples: Mapping[Labels, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    name: str
    kind: Literal["counter", "gauge"]
    help: str
    values: Callable[[JobFigures], Mapping[Labels, float]]
    """By the further labels; nothing when there is nothing to tell."""
    more: Labels = ()
    merge: Merge = lambda one, other: one + other
    """How jobs under `other` become one sample."""


def derive_families(jobs: Iterable[JobFigures]) -> list[Family]:
    """All samples of all jobs."""
    listed = list(jobs)
    return [_family(measure, listed) for measure in _MEASURES]


def _family(measure: _Measure, jobs: Sequence[JobFigures]) -> Family:
    samples: dict[Labels, float] = {}
    for job in jobs:
        for more, value in measure.values(job).items():
            key = (*job.labels, *more)
            samples[key] = measure.merge(samples[key], value) if key in samples else value
    labels = (*JOB_LABELS, *measure.more)
    return Family(name=measure.name, kind=measure.kind, help=measure.help, labels=labels, samples=samples)


def _one(value: float | None) -> dict[Labels, float]:
    return {} if value is None else {(): value}


def _fates(job: JobFigures) -> dict[Labels, float]:
    rows = job.totals.rows
    names = ("loaded", "unselected", "error", "late", "duplicate")
    return {(name,): getattr(rows, name) for name in names}


def _lag(unit: LagUnit, factor: float = 1.0) -> Callable[[JobFigures], Mapping[Labels, float]]:
    def read(job: JobFigures) -> Mapping[Labels, float]:
        lag = job.lag
        behind = lag.behind if lag is not None and lag.unit is unit else None
        return _one(None if behind is None else behind * factor)

    return read


_MEASURES: tuple[_Measure, ...] = (
    _Measure(
        name="lading_rows", kind="counter", help="Rows read and committed, by fate.", values=_fates, more=("fate",)
    ),
    _Measure(
        name="lading_received_bytes",
        kind="counter",
        help="Bytes received from the source for rows that were committed.",
        values=lambda job: _one(job.totals.received_bytes),
    ),
    _Measure(
        name="lading_source_files",
        kind="counter",
        help="Files of the source that were loaded.",
        values=lambda job: _one(job.totals.source_files),
    ),
    _Measure(
        name="lading_data_files",
        kind="counter",
        help="Data files added to the table.",
        values=lambda job: _one(job.totals.data_files),
    ),
    _Measure(
        name="lading_data_bytes",
        kind="counter",
        help="Bytes of data files added to the table.",
        values=lambda job: _one(job.totals.data_bytes),
    ),
    _Measure(
        name="lading_job_commits",
        kind="counter",
        help="Commits that loaded something, in the life of the job.",
        values=lambda job: _one(job.totals.commits),
    ),
    _Measure(
        name="lading_batches",
        kind="counter",
        help="Batches in the life of the job, by their end: succeeded, failed or cancelled.",
        values=lambda job: {(outcome,): count for outcome, count in job.batches.items()},
        more=("outcome",),
    ),
    _Measure(
        name="lading_job_state",
        kind="gauge",
        help="1 for the state a job is in; under `other`, the number of jobs in it.",
        values=lambda job: {(job.state,): 1.0},
        more=("state",),
    ),
    _Measure(
        name="lading_job_failures_in_a_row",
        kind="gauge",
        help="Batches that failed since the last one that was committed.",
        values=lambda job: _one(job.failures),
        merge=max,
    ),
    _Measure(
        name="lading_job_auto_resume_tries",
        kind="gauge",
        help="How often the job was resumed without a person since it last did well.",
        values=lambda job: _one(job.auto_resume_tries),
        merge=max,
    ),
    _Measure(
        name="lading_last_commit_timestamp_seconds",
        kind="gauge",
        help="When the job last committed, in seconds since 1970.",
        values=lambda job: _one(job.last_commit_at.timestamp() if job.last_commit_at else None),
        merge=max,
    ),
    _Measure(
        name="lading_lag_records",
        kind="gauge",
        help="Records that are in the source and not loaded yet.",
        values=_lag(LagUnit.RECORDS),
    ),
    _Measure(
        name="lading_lag_seconds",
        kind="gauge",
        help="How long the oldest unread record has been in the source; of several partitions the longest.",
        values=_lag(LagUnit.MILLISECONDS, 0.001),
        merge=max,
    ),
    _Measure(
        name="lading_lag_files",
        kind="gauge",
        help="Files that are in the source and not loaded yet.",
        values=_lag(LagUnit.FILES),
    ),
    _Measure(
        name="lading_watermark_timestamp_seconds",
        kind="gauge",
        help="The watermark of a job that has one: no row with an earlier event time is expected.",
        values=lambda job: _one(None if job.watermark_us is None else job.watermark_us / 1_000_000),
        merge=min,
    ),
    _Measure(
        name="lading_state_rows",
        kind="gauge",
        help="Rows of what a job keeps between batches: keys, or partial aggregates of windows that are open.",
        values=lambda job: _one(job.kept.rows if job.kept is not None else None),
    ),
    _Measure(
        name="lading_state_bytes",
        kind="gauge",
        help="Size of the files of what a job keeps between batches.",
        values=lambda job: _one(job.kept.size_bytes if job.kept is not None else None),
    ),
    _Measure(
        name="lading_partitions_open",
        kind="gauge",
        help="Partitions of the table that are not done yet, for jobs with listeners.",
        values=lambda job: _one(job.listening.open if job.listening is not None else None),
    ),
    _Measure(
        name="lading_partitions_done",
        kind="counter",
        help="How often a partition was done, for jobs with listeners.",
        values=lambda job: _one(job.listening.marked if job.listening is not None else None),
    ),
    _Measure(
        name="lading_rows_after_done",
        kind="counter",
        help="Rows that came to a partition after it was done.",
        values=lambda job: _one(job.listening.late_rows if job.listening is not None else None),
    ),
    _Measure(
        name="lading_listener_notices_pending",
        kind="gauge",
        help="Notices that a listener has not taken yet.",
        values=lambda job: _one(job.listening.pending if job.listening is not None else None),
    ),
    _Measure(
        name="lading_listeners_failing",
        kind="gauge",
        help="Listeners that could not be told when they were last tried.",
        values=lambda job: _one(len(job.listening.failures) if job.listening is not None else None),
    ),
    _Measure(
        name="lading_files_left_out",
        kind="gauge",
        help="Files that are in the source and are not going to be loaded, by reason: late, forgotten or changed.",
        values=lambda job: {(reason,): count for reason, count in job.left_out.items()},
        more=("reason",),
    ),
    _Measure(
        name="lading_seconds_to_trim",
        kind="gauge",
        help="Seconds until the source may delete the oldest row that is not loaded yet.",
        values=lambda job: _one(job.lag.seconds_to_trim if job.lag else None),
        merge=min,
    ),
)
