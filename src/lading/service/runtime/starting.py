"""How a job is started in its table: from what the store remembers, which may be nothing.

Kept apart from statements and Spark: the simulator starts jobs with it too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from lading.commit.protocols import Bills
from lading.commit.steps import Steps
from lading.ids import JobId
from lading.jobs.record import JobRecord
from lading.model.bill import Bill
from lading.model.codec import decode
from lading.model.positions import Positions
from lading.service.runtime.interrupted import BEGUN_PREFIX, check_not_cut_off

if TYPE_CHECKING:
    from lading.commit.coordinator import Coordinator


class SmallValues(Protocol):
    """Small values by key, of the metadata store."""

    def read_setting(self, key: str) -> str | None: ...
    def drop_setting(self, key: str) -> None: ...


def start_steps(store: SmallValues, record: JobRecord, coordinator: Coordinator, bills: Bills) -> Steps[Bill]:
    """Open the job, or take it over."""
    # The commit of an edit that was cut off may still be under way: the takeover fences it.
    is_begun = store.read_setting(BEGUN_PREFIX + record.job_id) is not None
    goodbye, created = None if is_begun else record.goodbye, created_positions(store, record)
    bill = yield from coordinator.start(last_seen=record.last_seen, said_goodbye=goodbye, created_at=created)
    check_not_cut_off(coordinator.job, bills, bill, record.last_seen, is_begun=is_begun)
    if is_begun:
        store.drop_setting(BEGUN_PREFIX + record.job_id)
    return bill


def held_steps(steps: Steps[Bill], check_held: Callable[[], None]) -> Steps[Bill]:
    """A start, for a service that has the job on a lease. Raises what `check_held` does when it has not.

    To open a job commits to its table, and would fence the service that has the job by now: this one may have been
    stopped at any step. So the lease is looked at after the head was read, right before each commit: one that took the
    job over and opened it in between has moved the head, and the commit is refused.
    """
    check_held()
    while True:
        try:
            name = next(steps)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]  # the generator's own return type
        if name == "commit.before":
            check_held()
        yield name


def opening_key(job_id: JobId) -> str:
    """Where the store keeps the positions of a job until its table has them."""
    return f"created/{job_id}"


def created_positions(store: SmallValues, record: JobRecord) -> Positions | None:
    """Where a job begins that has no head yet; None when CREATE has finished, or was done by an older Lading."""
    kept = store.read_setting(opening_key(record.job_id)) if record.last_seen is None else None
    return decode(Positions, json.loads(kept), where=f"The start of job {record.full_name}") if kept else None
