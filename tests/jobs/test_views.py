"""What people see: the same columns, keys and strings as in Doris."""

from __future__ import annotations

import json
from dataclasses import replace
from zoneinfo import ZoneInfo

from lading.jobs.dialects import JOB_COLUMNS, TASK_COLUMNS
from lading.jobs.events import BatchCancelled, Stopped
from lading.jobs.views import render_job, render_jobs, render_task, render_tasks
from tests.jobs.story import Story, tally

JOB_HEADER = (
    "Id, Name, Definer, ExecuteType, RecurringStrategy, Status, ExecuteSql, CreateTime, SucceedTaskCount, "
    "FailedTaskCount, CanceledTaskCount, Comment, Properties, CurrentOffset, EndOffset, LoadStatistic, ErrorMsg, "
    "JobRuntimeMsg, Lag, LastTaskSuccessTime"
)
TASK_HEADER = (
    "TaskId, JobId, JobName, Label, Status, ErrorMsg, CreateTime, StartTime, FinishTime, TrackingUrl, LoadStatistic, "
    "User, FirstErrorMsg, RunningOffset"
)


def test_columns_stand_in_the_order_of_doris() -> None:
    assert ", ".join(JOB_COLUMNS) == JOB_HEADER
    assert ", ".join(TASK_COLUMNS) == TASK_HEADER


def test_a_job_row_is_made_of_strings() -> None:
    story = Story().open()
    story.begin()
    story.commit(rows=20, bad=2)
    row = render_job(story.record, tally(50, bad=3))
    assert tuple(row) == JOB_COLUMNS
    assert all(isinstance(value, str) for value in row.values())
    assert (row["ExecuteType"], row["Status"], row["SucceedTaskCount"]) == ("STREAMING", "RUNNING", "1")
    assert row["Properties"] == '{"max_interval":"5"}'
    assert json.loads(row["LoadStatistic"]) == {
        "scannedRows": 50,
        "loadBytes": 350,
        "fileNumber": 1,
        "fileSize": 400,
        "filteredRows": 3,
    }
    assert (row["ErrorMsg"], row["CreateTime"]) == ("", "2026-01-01 00:00:00")
    assert json.loads(render_job(story.record, None)["LoadStatistic"])["scannedRows"] == 20


def test_a_paused_job_shows_its_reason_as_json() -> None:
    story = Story().open()
    story.pause()
    assert json.loads(render_job(story.record, None)["ErrorMsg"]) == {
        "code": "MANUAL_PAUSE_ERR",
        "msg": "User ann pauses job",
    }


def test_jobs_shows_jobs_that_were_not_dropped_oldest_first() -> None:
    first, second, dropped = Story(), Story(), Story()
    second.wait(1)
    dropped.tell(Stopped(at=dropped.now))
    newer = replace(second.record, created_at=second.now, name="newer")
    rows = render_jobs([newer, dropped.record, first.record], {})
    assert [row["Name"] for row in rows] == ["orders", "newer"]


def test_a_task_row_is_made_of_strings() -> None:
    story = Story().open()
    story.begin()
    running = render_task(story.tasks[1])
    assert (running["Status"], running["LoadStatistic"], running["FinishTime"]) == ("RUNNING", "", "")
    story.commit(rows=4, bad=1)
    row = render_task(story.tasks[1], zone=ZoneInfo("Asia/Shanghai"))
    assert tuple(row) == TASK_COLUMNS
    assert all(isinstance(value, str) for value in row.values())
    assert row["Label"] == f"{row['JobId']}_{row['TaskId']}"
    assert (row["User"], row["StartTime"]) == ("ann", "2026-01-01 08:00:00")
    assert json.loads(row["LoadStatistic"]) == {
        "ScannedRows": 4,
        "LoadBytes": 28,
        "FileNumber": 1,
        "FileSize": 32,
        "FilteredRows": 1,
        "TaskNumber": 1,
        "Unfinished backends": {},
        "All backends": {},
    }
    assert json.loads(row["RunningOffset"]) == {"startFileName": "a", "endFileName": "b"}


def test_after_pause_tasks_add_up_and_stand_newest_first() -> None:
    story = Story().open()
    story.begin()
    story.commit()
    story.begin()
    story.pause()
    story.tell(BatchCancelled(task_id=2, at=story.now))
    rows = render_tasks(story.tasks.values())
    assert [row["Status"] for row in rows] == ["CANCELED", "SUCCESS"]
    job = render_job(story.record, None)
    counts = [int(job[name]) for name in ("SucceedTaskCount", "FailedTaskCount", "CanceledTaskCount")]
    assert sum(counts) == len(rows)
