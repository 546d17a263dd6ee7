"""How jobs and tasks are shown: the rows of `jobs("type"="insert")`, `tasks("type"="insert")`, SHOW ROUTINE LOAD, its
tasks, and information_schema.routine_load_jobs.

Columns and the keys of JSON values are those of Doris. Every value is a string; routine loads have None where Doris has
NULL.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo

from lading.ids import JobId
from lading.jobs.dialects import JOB_COLUMNS, ROUTINE_COLUMNS, ROUTINE_TASK_COLUMNS, SCHEMA_COLUMNS, TASK_COLUMNS
from lading.jobs.reasons import Reason, ReasonCode, render_reason
from lading.jobs.record import JobRecord, JobState
from lading.jobs.tasks import TaskRecord
from lading.model.tally import Tally

_OF_SHOW = {
    "JOB_ID": "Id",
    "JOB_NAME": "Name",
    "USER_NAME": "User",
    "FIRST_ERROR_MSG": "FirstErrorMsg",
    "ERROR_LOG_URLS": "ErrorLogUrls",
}
_MS = timedelta(milliseconds=1)
KEPT_URLS = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = dict[str, str | None]


def render_job(
    record: JobRecord,
    totals: Tally | None,
    *,
    lag: int | None = None,
    service: str = "",
    health: str = "",
    zone: tzinfo = UTC,
) -> dict[str, str]:
    """One row of jobs(). `totals` are those of the head's bill; None shows the copy in the record.

    `lag` are the files that are still to be loaded; None where nobody has counted them. `service` is the one that runs
    the job, when there are several. `health` stands in the statistic, which is where Lading adds to what Doris shows.
    """
    told = {**event_time_facts(record, totals), **listener_facts(record), **errors_table_facts(record)}
    added = {**told, **({"health": health} if health else {})}
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
        render_job_statistic(totals or record.totals, added),
        render_error(record.reason),
        _with_service(record.runtime_message, service),
        "" if lag is None else str(lag),
        render_time(record.last_success_at, zone),
    )
    return dict(zip(JOB_COLUMNS, values, strict=True))


def render_jobs(
    records: Iterable[JobRecord],
    totals: Mapping[str, Tally],
    *,
    lags: Mapping[str, int] | None = None,
    services: Mapping[JobId, str] | None = None,
    healths: Mapping[str, str] | None = None,
    zone: tzinfo = UTC,
) -> list[dict[str, str]]:
    """All rows of jobs(): those that were not dropped, oldest first. All maps are by job id."""
    shown = [job for job in records if job.state is not JobState.STOPPED]
    ordered = sorted(shown, key=lambda job: (job.created_at, job.job_id))
    known, runs_in, doing = lags or {}, services or {}, healths or {}
    return [
        render_job(
            job,
            totals.get(job.job_id),
            lag=known.get(job.job_id),
            service=runs_in.get(job.job_id, ""),
            health=doing.get(job.job_id, ""),
            zone=zone,
        )
        for job in ordered
    ]


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


def listener_facts(record: JobRecord) -> dict[str, object]:
    """What statistics tell of a job with listeners."""
    known = record.listening
    if known is None:
        return {}
    told: dict[str, object] = {
        "openPartitions": known.open,
        "partitionsMarkedDone": known.marked,
        "rowsAfterDone": known.late_rows,
        "pendingNotices": known.pending,
    }
    if known.untracked:
        told["partitionsNotFollowed"] = known.untracked
    if known.failures:
        told["failedListeners"] = {each.listener: f"{each.error} (try {each.tries})" for each in known.failures}
    return told


def errors_table_facts(record: JobRecord) -> dict[str, object]:
    """What statistics tell of a job with an errors table: how many commits with bad rows are still to be copied."""
    name, known = record.spec.errors_table if record.spec is not None else "", record.errors_copied
    if not name:
        return {}
    told: dict[str, object] = {"errorsTable": name}
    if known is not None and known.table == name:
        told |= {"errorRowsCopied": known.rows, "errorCommitsToCopy": known.behind}
        told |= {"errorsTableProblem": f"{known.error} (try {known.tries})"} if known.error else {}
    return told


def event_time_facts(record: JobRecord, totals: Tally | None) -> dict[str, object]:
    """What statistics tell besides of a job with a watermark, and of one that joins. Doris has no such thing."""
    joined = {"joined": {each.table: each.snapshot for each in record.joined}} if record.joined else {}
    return {**_event_times(record, totals), **joined}


def _event_times(record: JobRecord, totals: Tally | None) -> dict[str, object]:
    if record.spec is None or record.spec.watermark is None:
        return {}
    tally, kept = totals or record.totals or Tally(), record.kept
    rows = tally.rows
    told: dict[str, object] = {"lateRows": rows.late, "watermark": render_event_time(record.watermark_us)}
    told["futureRows"] = tally.ahead
    if record.spec.dedup is not None:
        told["duplicateRows"] = rows.duplicate
    if record.spec.dedup is not None or record.spec.window is not None:
        told |= {"stateRows": kept.rows if kept else 0, "stateBytes": kept.size_bytes if kept else 0}
    return told


def render_event_time(micros: int | None) -> str | None:
    """A moment in UTC as people read it; beyond the years of Python in microseconds."""
    if micros is None:
        return None
    try:
        return (_EPOCH + timedelta(microseconds=micros)).isoformat(sep=" ")
    except OverflowError:
        return f"{micros} microseconds since 1970"


def render_job_statistic(totals: Tally | None, more: Mapping[str, object] | None = None) -> str:
    """What a job loaded in its life."""
    tally = totals or Tally()
    return _render_json(
        {
            "scannedRows": tally.rows.total,
            "loadBytes": tally.received_bytes,
            "fileNumber": tally.source_files,
            "fileSize": tally.source_bytes,
            "filteredRows": tally.rows.error,
            **(more or {}),
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


# Routine loads.


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutineFacts:
    """What is shown of a routine load and is not in its record. Secrets are masked."""

    source_type: str
    """KAFKA or KINESIS."""
    job_properties: Mapping[str, str] = field(default_factory=dict)
    source_properties: Mapping[str, str] = field(default_factory=dict)
    custom_properties: Mapping[str, str] = field(default_factory=dict)
    progress: Mapping[str, str] = field(default_factory=dict)
    starts: Mapping[str, str] = field(default_factory=dict)
    """What the next task reads first, by partition that is not finished."""
    lag: Mapping[str, int] = field(default_factory=dict)
    """-1 where nobody knows."""
    statistic: Mapping[str, int] = field(default_factory=dict)
    """What the stream adds to the statistic."""
    tasks: int = 0
    """Tasks that a batch has now."""
    error_urls: tuple[str, ...] = ()
    timeout_s: int = 0
    rows_per_s: float = 0.0
    """Over the last minutes, as every other face shows it; 0 for a job that does not run."""
    bytes_per_s: float = 0.0
    service: str = ""
    """The one that runs the job, when several share the store."""
    health: str = ""
    """How it is doing, in a word."""


def render_routine_load(
    record: JobRecord, facts: RoutineFacts, totals: Tally | None, *, now: datetime, zone: tzinfo = UTC
) -> Row:
    """One row of SHOW ROUTINE LOAD. `totals` are those of the head's bill; None shows the copy in the record."""
    is_told = record.state in (JobState.PAUSED, JobState.CANCELLED)
    values = (
        record.job_id,
        record.name,
        render_time(record.created_at, zone),
        render_time(record.paused_at, zone) or None,
        render_time(record.ended_at, zone) or None,
        record.database,
        record.target.rpartition(".")[2],
        "false",
        record.state.value,
        facts.source_type,
        str(facts.tasks if record.state is JobState.RUNNING else 0),
        _render_json(facts.job_properties),
        _render_json(facts.source_properties),
        _render_json(facts.custom_properties),
        _render_json(render_statistic(record, facts, totals or record.totals or Tally(), now)),
        _render_json(facts.progress),
        _render_json(facts.lag),
        render_reason(record.reason) if is_told else "",
        ", ".join(facts.error_urls[:KEPT_URLS]),
        _with_service(_other_message(record, zone), facts.service),
        record.definer,
        record.comment,
        "",
        record.first_error,
    )
    return dict(zip(ROUTINE_COLUMNS, values, strict=True))


def render_statistic(record: JobRecord, facts: RoutineFacts, totals: Tally, now: datetime) -> dict[str, object]:
    """What a job loaded in its life. Everything that counts comes from the bills."""
    rows = totals.rows
    took_ms = max(1, (now - record.created_at) // _MS)
    return {
        "receivedBytes": totals.received_bytes,
        "runningTxns": [record.task.task_id] if record.task else [],
        "errorRows": rows.error,
        "errorRowsAfterResumed": record.window_rows.error,
        "committedTaskNum": totals.commits,
        "loadedRows": rows.loaded,
        "loadRowsRate": int(facts.rows_per_s),
        "abortedTaskNum": record.counts.failed + record.counts.cancelled,
        "totalRows": rows.total,
        "unselectedRows": rows.unselected,
        "receivedBytesRate": int(facts.bytes_per_s),
        "taskExecuteTimeMs": took_ms,
        **event_time_facts(record, totals),
        **listener_facts(record),
        **errors_table_facts(record),
        **({"health": facts.health} if facts.health else {}),
        **facts.statistic,
    }


def render_routine_task(record: JobRecord, facts: RoutineFacts, *, zone: tzinfo = UTC) -> list[Row]:
    """The task that a job has now: one that runs, or one that waits for its turn."""
    task = record.task
    if record.state is not JobState.RUNNING and task is None:
        return []
    next_seq = record.last_seen.seq + 1 if record.last_seen else 0
    values = (
        task.label if task else f"{record.job_id}_{record.counts.begun + 1}",
        str(next_seq) if task else "-1",
        "PREPARE" if task else None,
        record.job_id,
        render_time(task.created_at, zone) if task else "",
        (render_time(task.started_at, zone) or None) if task else None,
        str(facts.timeout_s),
        "-1",
        _render_json(_task_starts(task) or facts.starts),
    )
    return [dict(zip(ROUTINE_TASK_COLUMNS, values, strict=True))]


def _task_starts(task: TaskRecord | None) -> dict[str, str]:
    """Where an open task began to read, by partition. Tasks of older releases do not tell."""
    ranges = json.loads(task.running_offset) if task is not None and task.running_offset else {}
    return {partition: each["start"] for partition, each in ranges.items()}


def render_schema_row(record: JobRecord, shown: Row) -> Row:
    """One row of information_schema.routine_load_jobs, from one of SHOW ROUTINE LOAD."""
    by_name = {name.lower(): value for name, value in shown.items()}
    is_abnormal = (
        record.state is JobState.PAUSED
        and record.reason is not None
        and record.reason.code is not ReasonCode.MANUAL_PAUSE_ERR
    )
    own = {
        "CURRENT_ABORT_TASK_NUM": str(record.failures),
        "IS_ABNORMAL_PAUSE": "true" if is_abnormal else "false",
    }
    return {
        name: own[name] if name in own else by_name[_OF_SHOW.get(name, name.replace("_", "")).lower()]
        for name in SCHEMA_COLUMNS
    }


def _with_service(message: str, service: str) -> str:
    told = f"runs in {service}" if service else ""
    return "; ".join(filter(None, (message, told)))


def _other_message(record: JobRecord, zone: tzinfo) -> str:
    if not record.last_error:
        return record.runtime_message
    return f"{render_time(record.last_error_at, zone)}: {record.last_error}"
