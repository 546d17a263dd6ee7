"""SHOW ROUTINE LOAD as Doris prints it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

from lading.jobs.dialects import ROUTINE_COLUMNS, ROUTINE_TASK_COLUMNS, SCHEMA_COLUMNS
from lading.jobs.events import Stopped, TargetGone
from lading.jobs.record import JobKind, WindowLimits
from lading.jobs.views import RoutineFacts, Row, render_routine_load, render_routine_task, render_schema_row
from tests.jobs.story import START, Story

HEADER = (
    "Id, Name, CreateTime, PauseTime, EndTime, DbName, TableName, IsMultiTable, State, DataSourceType, CurrentTaskNum, "
    "JobProperties, DataSourceProperties, CustomProperties, Statistic, Progress, Lag, ReasonOfStateChanged, "
    "ErrorLogUrls, OtherMsg, User, Comment, ComputeGroup, FirstErrorMsg"
)
TASK_HEADER = "TaskId, TxnId, TxnStatus, JobId, CreateTime, ExecuteStartTime, Timeout, BeId, DataSourceProperties"
SCHEMA_HEADER = (
    "JOB_ID, JOB_NAME, CREATE_TIME, PAUSE_TIME, END_TIME, DB_NAME, TABLE_NAME, STATE, CURRENT_TASK_NUM, "
    "JOB_PROPERTIES, DATA_SOURCE_PROPERTIES, CUSTOM_PROPERTIES, STATISTIC, PROGRESS, LAG, REASON_OF_STATE_CHANGED, "
    "ERROR_LOG_URLS, USER_NAME, CURRENT_ABORT_TASK_NUM, IS_ABNORMAL_PAUSE, COMPUTE_GROUP, FIRST_ERROR_MSG"
)
FACTS = RoutineFacts(
    rows_per_s=3.9,
    bytes_per_s=25.0,
    source_type="KINESIS",
    progress={"s1": "7"},
    starts={"s1": "AFTER 9"},
    lag={"s1": -1},
    statistic={"openShardNum": 1},
    tasks=1,
    error_urls=("1", "2", "3", "4"),
    timeout_s=600,
)


def story() -> Story:
    made = Story(JobKind.ROUTINE, window=WindowLimits()).open()
    made.begin()
    return made


def shown(told: Story) -> Row:
    return render_routine_load(told.record, FACTS, None, now=START + timedelta(seconds=2))


def test_columns_stand_in_the_order_of_doris() -> None:
    assert ", ".join(ROUTINE_COLUMNS) == HEADER
    assert ", ".join(ROUTINE_TASK_COLUMNS) == TASK_HEADER
    assert ", ".join(SCHEMA_COLUMNS) == SCHEMA_HEADER


def test_the_statistic_counts_what_the_bills_count() -> None:
    told = story()
    told.commit(rows=20, bad=2)
    statistic = json.loads(str(shown(told)["Statistic"]))
    assert statistic == {
        "receivedBytes": 140,
        "runningTxns": [],
        "errorRows": 2,
        "errorRowsAfterResumed": 2,
        "committedTaskNum": 1,
        "loadedRows": 18,
        "loadRowsRate": 3,
        "abortedTaskNum": 0,
        "totalRows": 20,
        "unselectedRows": 0,
        "receivedBytesRate": 25,
        "taskExecuteTimeMs": 2000,
        "openShardNum": 1,
    }


def test_a_pause_is_told_with_its_code_and_a_running_job_without() -> None:
    told = story()
    assert (shown(told)["ReasonOfStateChanged"], shown(told)["CurrentTaskNum"]) == ("", "1")
    told.commit(rows=20, bad=2)
    row = shown(told)
    assert str(row["ReasonOfStateChanged"]).startswith("ErrorReason{code=errCode = 102, msg='current error rows")
    assert (row["State"], row["CurrentTaskNum"], row["PauseTime"]) == ("PAUSED", "0", "2026-01-01 00:00:00")
    assert row["ErrorLogUrls"] == "1, 2, 3"
    schema = render_schema_row(told.record, row)
    assert tuple(schema) == SCHEMA_COLUMNS
    assert (schema["IS_ABNORMAL_PAUSE"], schema["USER_NAME"], schema["JOB_NAME"]) == ("true", "ann", "orders")


def test_times_that_are_not_are_null() -> None:
    told = story()
    assert (shown(told)["PauseTime"], shown(told)["EndTime"]) == (None, None)
    told.tell(Stopped(at=told.now))
    assert shown(told)["EndTime"] == "2026-01-01 00:00:00"
    assert shown(told)["ReasonOfStateChanged"] == ""


def test_a_cancelled_job_says_why() -> None:
    told = story()
    told.tell(TargetGone(message="the table is gone", at=told.now))
    row = shown(told)
    assert row["State"] == "CANCELLED"
    assert row["ReasonOfStateChanged"] == "ErrorReason{code=errCode = 6, msg='the table is gone'}"
    assert row["OtherMsg"] == "2026-01-01 00:00:00: the table is gone"


def test_a_task_runs_waits_or_is_not_there() -> None:
    told = story()
    running = render_routine_task(told.record, FACTS)[0]
    assert (running["TxnId"], running["TxnStatus"], running["Timeout"]) == ("1", "PREPARE", "600")
    assert running["DataSourceProperties"] == '{"s1":"AFTER 7"}'
    told.commit()
    waiting = render_routine_task(told.record, FACTS)[0]
    assert (waiting["TxnId"], waiting["TxnStatus"], waiting["ExecuteStartTime"]) == ("-1", None, None)
    assert waiting["DataSourceProperties"] == '{"s1":"AFTER 9"}'
    told.pause()
    assert render_routine_task(replace(told.record, task=None), FACTS) == []
