"""What every runner of a service shares, and who is told of what it does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from lading.clock import Clock
from lading.commit.protocols import Listeners, Merger, Stager
from lading.ids import Incarnation, JobId
from lading.jobs.record import JobRecord
from lading.model.batch import Limits
from lading.model.bill import Bill
from lading.model.table import ColumnChange
from lading.service.runtime.unrecorded import Unrecorded
from lading.store.protocols import MetadataStore
from lading.tables.maintenance import CarePolicy

if TYPE_CHECKING:
    from lading.commit.coordinator import Coordinator
    from lading.plan.planner import Planner
    from lading.service.compile.compiled import Compiled
    from lading.service.runtime.errors_copy import ErrorsCopy
    from lading.status.outcomes import Outcome
    from lading.tables.base import LakeTable

_LOG = logging.getLogger("lading.jobs")


class CancellableStager(Stager, Merger, Protocol):
    """A stager whose batch can be cut off by another thread; `stage` then raises. It merges for loads with state."""

    def cancel(self) -> None: ...


class JobObserver(Protocol):
    """Somebody who counts and measures. None of these may raise or wait."""

    def step(self, record: JobRecord, step: str, seconds: float) -> None: ...
    def committed(self, record: JobRecord, bill: Bill) -> None: ...
    def batch_ended(self, record: JobRecord, outcome: Outcome, seconds: float) -> None: ...
    def fenced(self, record: JobRecord) -> None: ...
    def unrecorded(self, record: JobRecord) -> None: ...
    def auto_resumed(self, record: JobRecord) -> None: ...
    def evolved(self, record: JobRecord, changes: Sequence[ColumnChange]) -> None: ...
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
    errors: ErrorsCopy | None = None
    """Copies its bad rows to its errors table; None: it has none."""

    def is_ready(self) -> bool:
        return self.compiled.stage is not None

    def can_learn(self) -> bool:
        source = self.compiled.source
        return (self.compiled.stage is None or source.is_provisional) and source.can_learn_columns()

    def read_uncut(self) -> None:
        self.compiled.source.read_uncut()

    def shown(self, bill: Bill) -> str:
        return self.compiled.show_position(bill.positions)

    def shown_range(self, bill: Bill | None = None) -> str:
        planned = self.coordinator.planned
        return self.compiled.source.show_range(planned, bill) if planned is not None else ""

    def shown_end(self) -> str:
        return self.compiled.source.show_end()

    def is_full(self, bill: Bill, seconds: float) -> bool:
        return is_full(bill, self.compiled.job.limits, seconds)

    def is_complete(self, bill: Bill) -> bool:
        if bill.listening is not None and bill.listening.notices:
            return False  # Nobody would tell them later.
        if self.errors is not None and self.errors.needs_from is not None:
            return False  # Nobody would copy its bad rows later.
        return self.compiled.source.is_once and all(state.finished for state in bill.positions.partitions.values())

    def close(self) -> None:
        try:
            self.compiled.close()
        except Exception:  # noqa: BLE001 - told in the log; whatever the job was let go for is what its record must tell
            _LOG.exception("a source could not be closed", extra={"job": self.compiled.job.name})


Compile: TypeAlias = "Callable[[JobRecord], tuple[Compiled, LakeTable]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerContext:
    """What every runner of a service shares."""

    store: MetadataStore
    clock: Clock
    incarnation: Incarnation
    compile: Compile
    open_target: Callable[[JobRecord], LakeTable]
    make_stager: Callable[[Compiled], CancellableStager]
    make_listeners: Callable[[JobRecord, Compiled, LakeTable], Listeners | None] = lambda record, compiled, table: None
    make_errors: Callable[[JobRecord, LakeTable], ErrorsCopy | None] = lambda record, table: None
    care: CarePolicy = field(default_factory=CarePolicy)
    watches: list[JobObserver] = field(default_factory=list)
    unrecorded: Unrecorded = field(default_factory=Unrecorded)
    service_id: Callable[[], str | None] = lambda: None
    """As whom runners change their jobs; None: nobody else can have them."""
    surely_holds: Callable[[JobId], bool] = lambda job_id: True
    """Whether nobody else can have a job, also when this process was stopped for a while."""
    max_columns: int = 1000
    """So many columns a table has at most that grows with its source."""
    has_others: Callable[[], bool] = lambda: False
    """Whether other services share the store."""


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
