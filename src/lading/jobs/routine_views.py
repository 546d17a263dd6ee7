"""How routine loads are shown: SHOW ROUTINE LOAD, its tasks, and information_schema.routine_load_jobs.

Column names, their order and the keys of JSON values are those of Doris. Values are strings, or None where Doris has
NULL.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo

from lading.jobs.reasons import ReasonCode, render_reason
from lading.jobs.record import JobRecord, JobState
from lading.jobs.tasks import TaskRecord
from lading.jobs.views import render_time
from lading.model.tally import Tally

ROUTINE_COLUMNS: tuple[str, ...] = (
    "Id",
    "Name",
    "CreateTime",
    "PauseTime",
    "EndTime",
    "DbName",
    "TableName",
    "IsMultiTable",
    "State",
    "DataSourceType",
    "CurrentTaskNum",
    "JobProperties",
    "DataSourceProperties",
    "CustomProperties",
    "Statistic",
    "Progress",
    "Lag",
    "ReasonOfStateChanged",
    "ErrorLogUrls",
    "OtherMsg",
    "User",
    "Comment",
    "ComputeGroup",
    "FirstErrorMsg",
)
ROUTINE_TASK_COLUMNS: tuple[str, ...] = (
    "TaskId",
    "TxnId",
    "TxnStatus",
    "JobId",
    "CreateTime",
    "ExecuteStartTime",
    "Timeout",
    "BeId",
    "DataSourceProperties",
)
SCHEMA_COLUMNS: tuple[str, ...] = (
    "JOB_ID",
    "JOB_NAME",
    "CREATE_TIME",
    "PAUSE_TIME",
    "END_TIME",
    "DB_NAME",
    "TABLE_NAME",
    "STATE",
    "CURRENT_TASK_NUM",
    "JOB_PROPERTIES",
    "DATA_SOURCE_PROPERTIES",
    "CUSTOM_PROPERTIES",
    "STATISTIC",
    "PROGRESS",
    "LAG",
    "REASON_OF_STATE_CHANGED",
    "ERROR_LOG_URLS",
    "USER_NAME",
    "CURRENT_ABORT_TASK_NUM",
    "IS_ABNORMAL_PAUSE",
    "COMPUTE_GROUP",
    "FIRST_ERROR_MSG",
)
_OF_SHOW = {
    "JOB_ID": "Id",
    "JOB_NAME": "Name",
    "USER_NAME": "User",
    "FIRST_ERROR_MSG": "FirstErrorMsg",
    "ERROR_LOG_URLS": "ErrorLogUrls",
}
_MS = timedelta(milliseconds=1)
KEPT_URLS = 3

Row = dict[str, str | None]


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
        _json(facts.job_properties),
        _json(facts.source_properties),
        _json(facts.custom_properties),
        _json(render_statistic(record, facts, totals or record.totals or Tally(), now)),
        _json(facts.progress),
        _json(facts.lag),
        render_reason(record.reason) if is_told else "",
        ", ".join(facts.error_urls[:KEPT_URLS]),
        _other_message(record, zone),
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
        _json(_task_starts(task) or facts.starts),
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


def _other_message(record: JobRecord, zone: tzinfo) -> str:
    if not record.last_error:
        return record.runtime_message
    return f"{render_time(record.last_error_at, zone)}: {record.last_error}"


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
