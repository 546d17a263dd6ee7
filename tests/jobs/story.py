"""A job and a clock, so that a test reads as a story."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lading.ids import JobId, Token
from lading.jobs.actions import Action, SaveTask
from lading.jobs.events import BatchCommitted, BatchFailed, BatchStarted, Created, Event, Opened, PausedByUser, Tick
from lading.jobs.reasons import Failure, Reason, ReasonCode
from lading.jobs.record import JobKind, WindowLimits
from lading.jobs.tasks import TaskRecord
from lading.jobs.transition import create_record, transition
from lading.model.bill import Head
from lading.model.tally import RowCounts, Tally

START = datetime(2026, 1, 1, tzinfo=UTC)
JOB_ID = JobId("11111111-2222-4333-8444-555555555555")


def created(kind: JobKind, *, window: WindowLimits | None = None, name: str = "orders") -> Created:
    return Created(
        job_id=JOB_ID,
        name=name,
        database="sales",
        kind=kind,
        definition="INSERT INTO sales.orders SELECT * FROM S3(...)",
        target="orders",
        properties={"max_interval": "5"},
        user="ann",
        window=window,
        at=START,
    )


def tally(rows: int = 10, *, bad: int = 0, commits: int = 1) -> Tally:
    return Tally(
        rows=RowCounts(total=rows, loaded=rows - bad, error=bad),
        received_bytes=rows * 7,
        source_files=1,
        source_bytes=rows * 8,
        commits=commits,
    )


def failure(
    message: str = "boom",
    *,
    code: ReasonCode = ReasonCode.INTERNAL_ERR,
    retry: bool = True,
    while_staging: bool = False,
) -> Failure:
    return Failure(reason=Reason(code=code, message=message), retry=retry, while_staging=while_staging)


class Story:
    """Tells a job what happened and remembers every task it saved."""

    def __init__(self, kind: JobKind = JobKind.STREAMING, *, window: WindowLimits | None = None) -> None:
        self.record, self.actions = create_record(created(kind, window=window))
        self.now = START
        self.totals = Tally()
        self.seq = 0
        self.tasks: dict[int, TaskRecord] = {}

    def tell(self, event: Event) -> tuple[Action, ...]:
        self.record, self.actions = transition(self.record, event)
        saved = [action.task for action in self.actions if isinstance(action, SaveTask)]
        self.tasks.update({task.task_id: task for task in saved})
        return self.actions

    def wait(self, seconds: float = 0) -> tuple[Action, ...]:
        self.now += timedelta(seconds=seconds)
        return self.tell(Tick(at=self.now))

    def open(self) -> Story:
        self.tell(Opened(head=self.head, totals=self.totals, at=self.now))
        return self

    def begin(self) -> int:
        files, shards = '{"startFileName":"a","endFileName":"b"}', '{"s1":{"start":"AFTER 7"}}'
        shown = files if self.record.kind is JobKind.STREAMING else shards
        self.tell(BatchStarted(running_offset=shown, at=self.now))
        assert self.record.task is not None
        return self.record.task.task_id

    def commit(self, *, rows: int = 10, bad: int = 0) -> tuple[Action, ...]:
        """The open task lands."""
        assert self.record.task is not None
        return self.tell(self.landed(self.record.task.task_id, rows=rows, bad=bad))

    def landed(self, task_id: int, *, rows: int = 10, bad: int = 0) -> BatchCommitted:
        part = tally(rows, bad=bad)
        self.totals += part
        self.seq += 1
        return BatchCommitted(task_id=task_id, head=self.head, tally=part, totals=self.totals, at=self.now)

    def fail(self, what: Failure | None = None) -> tuple[Action, ...]:
        task_id = self.record.task.task_id if self.record.task else None
        return self.tell(BatchFailed(task_id=task_id, failure=what or failure(), at=self.now))

    def pause(self) -> tuple[Action, ...]:
        return self.tell(PausedByUser(user="ann", at=self.now))

    @property
    def head(self) -> Head:
        return Head(seq=self.seq, token=Token(self.seq + 1))

    @property
    def state(self) -> str:
        return self.record.state.value

    @property
    def code(self) -> str:
        return self.record.reason.code.name if self.record.reason else ""
