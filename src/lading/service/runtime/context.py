"""What every runner of a service shares, and who is told of what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lading.clock import Clock
from lading.commit.coordinator import Coordinator
from lading.commit.protocols import Stager
from lading.errors import JobChangedError
from lading.ids import Incarnation, JobId
from lading.jobs.events import Event
from lading.jobs.record import JobRecord
from lading.jobs.transition import transition
from lading.model.batch import Limits
from lading.model.bill import Bill
from lading.plan.planner import Planner
from lading.service.compile.compiled import Compiled
from lading.service.runtime.unrecorded import Unrecorded
from lading.status.outcomes import Outcome
from lading.store.protocols import MetadataStore
from lading.store.records import AuditEntry
from lading.tables.base import LakeTable
from lading.tables.maintenance import CarePolicy

MAX_SAVES = 20


class CancellableStager(Stager, Protocol):
    """A stager whose batch can be cut off by another thread; `stage` then raises."""

    def cancel(self) -> None: ...


class JobObserver(Protocol):
    """Somebody who counts and measures. None of these may raise or wait."""

    def step(self, record: JobRecord, step: str, seconds: float) -> None: ...
    def committed(self, record: JobRecord, bill: Bill) -> None: ...
    def batch_ended(self, record: JobRecord, outcome: Outcome, seconds: float) -> None: ...
    def fenced(self, record: JobRecord) -> None: ...
    def unrecorded(self, record: JobRecord) -> None: ...
    def auto_resumed(self, record: JobRecord) -> None: ...
    def files_behind(self, record: JobRecord, files: Mapping[str, int]) -> None: ...
    def files_left_out(self, record: JobRecord, files: Mapping[str, int], remark: str) -> None: ...


@dataclass(frozen=True, slots=True)
class OpenJob:
    """What is there while a job is open in this incarnation."""

    coordinator: Coordinator
    compiled: Compiled
    table: LakeTable
    planner: Planner
    stager: CancellableStager


Compile = Callable[[JobRecord], tuple[Compiled, LakeTable]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerContext:
    """What every runner of a service shares."""

    store: MetadataStore
    clock: Clock
    incarnation: Incarnation
    compile: Compile
    make_stager: Callable[[Compiled], CancellableStager]
    care: CarePolicy = field(default_factory=CarePolicy)
    watches: list[JobObserver] = field(default_factory=list)
    unrecorded: Unrecorded = field(default_factory=Unrecorded)


def save_event(store: MetadataStore, job_id: JobId, event: Event, audit: AuditEntry | None = None) -> JobRecord:
    """Change the record of a job, on top of whatever somebody else saved meanwhile; the audit in the same step."""
    for _ in range(MAX_SAVES):
        stored = store.load_job_by_id(job_id)
        record, actions = transition(stored.record, event)
        tasks = [action.task for action in actions if hasattr(action, "task")]
        if record == stored.record and not tasks and audit is None:
            return record
        try:
            return store.save_job(record, stored.version, tasks=tasks, audit=audit).record
        except JobChangedError:
            continue
    return store.save_job(record, stored.version, tasks=tasks, audit=audit).record


def range_of(opened: OpenJob, bill: Bill | None = None) -> str:
    """What the batch that was planned last reads, or has read, as tasks are shown with it."""
    planned = opened.coordinator.planned
    return opened.compiled.show_range(planned, bill) if planned is not None else ""


def retry_delay_s(failures: int) -> float:
    """How long to wait before the next attempt, after so many failed in a row: 0.25, 0.5, 1, … 8 seconds."""
    return float(min(0.25 * 2 ** max(0, failures - 1), 8.0))


def is_full(bill: Bill, limits: Limits, seconds: float) -> bool:
    """Whether a batch ended because of its limits, and not because the source had no more.

    Limits of rows and bytes are shared by the partitions; one that is much fuller than the others ends at its share. A
    partition that came to its end may have others waiting for it.
    """
    share = max(1, len(bill.ranges))
    tally = bill.tally
    return (
        tally.source_files >= limits.files
        or tally.rows.total >= limits.rows / share
        or max(tally.received_bytes, tally.source_bytes) >= limits.size_bytes / share
        or seconds >= limits.seconds
        or any(bill.positions.partitions[each.partition].finished for each in bill.ranges)
    )
