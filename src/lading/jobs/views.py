"""How jobs and tasks are shown: the rows of `jobs("type"="insert")` and `tasks("type"="insert")`.

Column names, their order and the keys of JSON values are those of Doris. Every value is a string.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, tzinfo

from lading.jobs.reasons import Reason
from lading.jobs.record import JobKind, JobRecord, JobState
from lading.jobs.tasks import TaskRecord
from lading.model.tally import Tally

JOB_COLUMNS: tuple[str, ...] = (
    "Id",
    "Name",
    "Definer",
    "ExecuteType",
    "RecurringStrategy",
    "Status",
    "ExecuteSql",
    "CreateTime",
    "SucceedTaskCount",
    "FailedTaskCount",
    "CanceledTaskCount",
    "Comment",
    "Properties",
    "CurrentOffset",
    "EndOffset",
    "LoadStatistic",
    "ErrorMsg",
    "JobRuntimeMsg",
    "Lag",
    "LastTaskSuccessTime",
)

TASK_COLUMNS: tuple[str, ...] = (
    "TaskId",
    "JobId",
    "JobName",
    "Label",
    "Status",
    "ErrorMsg",
    "CreateTime",
    "StartTime",
    "FinishTime",
    "TrackingUrl",
    "LoadStatistic",
    "User",
    "FirstErrorMsg",
    "RunningOffset",
)


def render_job(
    record: JobRecord, totals: Tally | None, *, lag: int | None = None, zone: tzinfo = UTC
) -> dict[str, str]:
    """One row of jobs(). `totals` are those of the head's bill; None shows the copy in the record.

    `lag` are the files that are still to be loaded; None where nobody has counted them.
    """
    values = (
        record.job_id,
        record.name,
        record.definer,
        "STREAMING",
        "",
        record.state.value,
        record.definition,
        render_time(record.created_at, zone),
        str(record.counts.succeeded),
        str(record.counts.failed),
        str(record.counts.cancelled),
        record.comment,
        _render_map(record.properties),
        record.current_offset,
        record.end_offset,
        render_job_statistic(totals or record.totals),
        render_error(record.reason),
        record.runtime_message,
        "" if lag is None else str(lag),
        render_time(record.last_success_at, zone),
    )
    return dict(zip(JOB_COLUMNS, values, strict=True))


def render_jobs(
    records: Iterable[JobRecord],
    totals: Mapping[str, Tally],
    *,
    lags: Mapping[str, int] | None = None,
    zone: tzinfo = UTC,
) -> list[dict[str, str]]:
    """All rows of jobs(): streaming jobs that were not dropped, oldest first. `totals` and `lags` are by job id."""
    shown = [job for job in records if job.kind is JobKind.STREAMING and job.state is not JobState.STOPPED]
    ordered = sorted(shown, key=lambda job: (job.created_at, job.job_id))
    known = lags or {}
    return [render_job(job, totals.get(job.job_id), lag=known.get(job.job_id), zone=zone) for job in ordered]


def render_task(task: TaskRecord, *, zone: tzinfo = UTC) -> dict[str, str]:
    """One row of tasks()."""
    values = (
        str(task.task_id),
        task.job_id,
        task.job_name,
        task.label,
        task.state.value,
        task.error,
        render_time(task.created_at, zone),
        render_time(task.started_at, zone),
        render_time(task.finished_at, zone),
        "",
        render_task_statistic(task.tally),
        task.user,
        task.first_error,
        task.running_offset,
    )
    return dict(zip(TASK_COLUMNS, values, strict=True))


def render_tasks(tasks: Iterable[TaskRecord], *, zone: tzinfo = UTC) -> list[dict[str, str]]:
    """All rows of tasks(), newest first."""
    ordered = sorted(tasks, key=lambda task: (task.created_at, task.task_id), reverse=True)
    return [render_task(task, zone=zone) for task in ordered]


def render_job_statistic(totals: Tally | None) -> str:
    """What a job loaded in its life."""
    tally = totals or Tally()
    return _render_json(
        {
            "scannedRows": tally.rows.total,
            "loadBytes": tally.received_bytes,
            "fileNumber": tally.source_files,
            "fileSize": tally.source_bytes,
            "filteredRows": tally.rows.error,
        }
    )


def render_task_statistic(tally: Tally | None) -> str:
    """What one task loaded; empty when it committed nothing."""
    if tally is None:
        return ""
    return _render_json(
        {
            "ScannedRows": tally.rows.total,
            "LoadBytes": tally.received_bytes,
            "FileNumber": tally.source_files,
            "FileSize": tally.source_bytes,
            "FilteredRows": tally.rows.error,
            "TaskNumber": 1,
            "Unfinished backends": {},
            "All backends": {},
        }
    )


def render_error(reason: Reason | None) -> str:
    """The reason of a pause as JSON; empty when there is none."""
    return _render_json({"code": reason.code.name, "msg": reason.message}) if reason else ""


def render_time(at: datetime | None, zone: tzinfo = UTC) -> str:
    """A time to the second, as Doris prints it; empty when there is none."""
    return at.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S") if at else ""


def _render_map(properties: Mapping[str, str]) -> str:
    return _render_json(dict(properties)) if properties else ""


def _render_json(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
