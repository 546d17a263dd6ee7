"""What is around the loop of a job: its store, the job that is open, and everything that is told or asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from lading.clock import Clock
from lading.commit.coordinator import Coordinator
from lading.commit.steps import Steps
from lading.errors import StageError
from lading.ids import JobId
from lading.jobs.record import JobRecord
from lading.jobs.tasks import TaskRecord
from lading.model.bill import Bill
from lading.status.outcomes import Outcome
from lading.store.records import AuditEntry, StoredJob


class LoopStore(Protocol):
    """What the loop needs of a metadata store."""

    def load_job_by_id(self, job_id: JobId) -> StoredJob: ...
    def save_job(
        self,
        record: JobRecord,
        expected_version: int,
        *,
        tasks: Iterable[TaskRecord] = (),
        audit: AuditEntry | None = None,
    ) -> StoredJob: ...


class LoopJob(Protocol):
    """A job that is open."""

    @property
    def coordinator(self) -> Coordinator: ...
    def is_ready(self) -> bool:
        """Whether batches can be planned. False: nothing has come yet to learn the columns from."""
        ...

    def can_learn(self) -> bool:
        """Whether columns are not known, and opening it again would tell them."""
        ...

    def read_uncut(self) -> None:
        """Plan no batch any more in which several tasks read one file."""
        ...

    def shown(self, bill: Bill) -> str:
        """The position after a bill, as jobs are shown with it."""
        ...

    def shown_range(self, bill: Bill | None = None) -> str:
        """What the batch that was planned last reads, or has read."""
        ...

    def shown_end(self) -> str:
        """How far the source reaches."""
        ...

    def is_full(self, bill: Bill, seconds: float) -> bool:
        """Whether a batch ended because of its limits."""
        ...

    def is_complete(self, bill: Bill) -> bool:
        """Whether a job that loads once has loaded everything."""
        ...

    def close(self) -> None:
        """Let go of what is open. Never raises."""
        ...


J = TypeVar("J", bound=LoopJob)


class LoopPorts(Protocol[J]):
    """What is around the loop. `tell_…` may not raise or wait, the others may do both."""

    @property
    def store(self) -> LoopStore: ...
    @property
    def clock(self) -> Clock: ...
    def compile(self, record: JobRecord) -> J: ...
    def start(self, job: J, record: JobRecord) -> Steps[Bill]:
        """Open it in its table, or take it over."""
        ...

    def is_halted(self) -> bool:
        """Whether somebody wants the batch that runs cut off."""
        ...

    def redact(self, text: str) -> str: ...
    def tell_opened(self, job: J, bill: Bill) -> None: ...
    def tell_step(self, name: str, since_s: float) -> None: ...
    def tell_ended(self, record: JobRecord, outcome: Outcome, seconds: float) -> None: ...
    def tell_fenced(self, record: JobRecord) -> None: ...
    def tell_error(self, error: Exception) -> None: ...
    def committed(self, job: J, record: JobRecord, bill: Bill) -> None:
        """After a commit is in the record: tell the source and others, look after the table."""
        ...

    def evolve(self, job: J, record: JobRecord, unseen: StageError) -> None:
        """Give the table the columns that rows need: a commit of its own that moves no head."""
        ...

    def remark(self, job: J) -> str:
        """The source had nothing: what people should know besides."""
        ...

    def tell_drained(self, record: JobRecord) -> None: ...
