"""The words of the two Doris dialects, and the few rules that Doris has for one of them alone.

CREATE JOB … ON STREAMING and CREATE ROUTINE LOAD make the same thing: a load that goes on. What differs is here, and
nothing else asks which of the two a job is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal


class JobKind(Enum):
    """Which statement made the job: CREATE JOB … ON STREAMING, or CREATE ROUTINE LOAD."""

    STREAMING = "streaming"
    ROUTINE = "routine"


class JobState(Enum):
    """All states. Each dialect knows five of them."""

    PENDING = "PENDING"
    NEED_SCHEDULE = "NEED_SCHEDULE"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FINISHED = "FINISHED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How people speak of a job."""

    kind: JobKind
    form: Literal["JOB", "ROUTINE LOAD"]
    """In statements."""
    noun: str
    """In messages."""
    has_database: bool
    """Names belong to a database; else they are global."""
    end_verb: Literal["DROP", "STOP"]
    alters_whole_source: bool
    """ALTER writes the source as a whole; else only what changes."""
    most_jobs: str = ""
    """The setting that says how many jobs there may be. Empty: as many as people make."""

    # States.

    waiting: JobState
    """In which a job waits to be opened: after CREATE and after RESUME."""
    can_finish: bool
    """A job that has loaded everything there was is FINISHED."""
    ends_without_target: bool
    """A job whose table is gone is CANCELLED, and not only paused."""
    reopens_running: bool
    """RESUME of a job that runs opens it again; else it is refused."""
    retries_tasks: bool
    """A task that failed is tried again; else another one takes its place."""
    most_resumes: int | None
    """So often in a row a job is resumed without a person. None: for ever; calm running begins the count again."""

    # Error texts. {name} is that of the job with its database, {own} without, {db} the database.

    exists: str
    exists_todo: str
    missing: str
    """No job to be changed has this name."""
    unseen: str
    """No job to be shown has this name."""
    no_tasks: str = ""
    """No job whose tasks can be shown has this name."""
    list_todo: str
    same_state: str
    ended: str
    not_paused: str

    def pauses(self, user: str) -> str:
        """The reason of a pause that a user made."""
        return f"User {user} pauses {self.noun}"

    def full_name(self, name: str, database: str) -> str:
        """How statements, pages and logs name a job."""
        return f"{database}.{name}" if self.has_database else name


STREAMING = Dialect(
    kind=JobKind.STREAMING,
    form="JOB",
    noun="job",
    has_database=False,
    end_verb="DROP",
    alters_whole_source=True,
    waiting=JobState.PENDING,
    can_finish=True,
    ends_without_target=False,
    reopens_running=False,
    retries_tasks=True,
    most_resumes=10,
    exists="job name exist: {own}",
    exists_todo="Choose another name, or drop it first.",
    missing="job not exist: {own}",
    unseen="job not exist: {own}",
    list_todo="See SHOW JOBS.",
    same_state="Can't change job status to the same status: job {name} is {state}",
    ended="job not exist: {name} is {state}",
    not_paused="Only PAUSED job can be altered: {name} is {state}",
)
ROUTINE = Dialect(
    kind=JobKind.ROUTINE,
    form="ROUTINE LOAD",
    noun="routine load job",
    has_database=True,
    end_verb="STOP",
    alters_whole_source=False,
    most_jobs="max_routine_load_job_num",
    waiting=JobState.NEED_SCHEDULE,
    can_finish=False,
    ends_without_target=True,
    reopens_running=True,
    retries_tasks=False,
    most_resumes=None,
    exists="Name {own} already used in db {db}",
    exists_todo="Choose another name, or stop it first.",
    missing="There is not operable routine load job with name {own}",
    unseen="There is no job named {own} in db {db}",
    no_tasks="The job named {own} does not exists or job state is stopped or cancelled",
    list_todo="See SHOW ALL ROUTINE LOAD.",
    same_state="Could not transform {state} to {wanted}: routine load job {name}",
    ended="Could not transform {state} to {wanted}: routine load job {name}. There is not operable routine load job "
    "with name {own}",
    not_paused="Only supports modification of PAUSED jobs: {name} is {state}",
)
DIALECTS: Mapping[JobKind, Dialect] = {each.kind: each for each in (STREAMING, ROUTINE)}


def dialect_named(text: str) -> Dialect:
    """The dialect of a job that a person names: `name` is a streaming job, `database.name` a routine load."""
    return ROUTINE if "." in text else STREAMING


# Columns, in their order.

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
