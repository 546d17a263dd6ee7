"""Sends OpenLineage events of what jobs did: one thread of a service, which no job waits for.

Events follow from the index of bills and from tasks, in order. What was sent last is in the store: a restart goes on
there. A job that was there before the first start is told of from then on.
"""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass, replace

from lading.errors import LadingError
from lading.ids import JobId
from lading.jobs.record import JobRecord
from lading.jobs.tasks import TaskRecord, TaskState
from lading.model.bill import BillKind
from lading.model.names import split_table
from lading.service.installation import Installation
from lading.service.lineage.config import LineageSettings
from lading.service.lineage.run_events import JobFacts, Json, TableFacts, events_of_bill, events_of_failure
from lading.service.views.build import redacted
from lading.store.records import BillEntry

EVERY_S = 5.0
FIRST_DELAY_S, LONGEST_DELAY_S = 10.0, 600.0
PREFIX = "lineage/"
MOST_BILLS = 1000
"""Commits of one job that are caught up with. Of more, the older ones are left out."""
_LOADS = (BillKind.LOAD, BillKind.REPLAY)
"""Commits that bring rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Up to where the events of a job were sent."""

    seq: int
    task_id: int


class LineageRounds:
    """One thread of a service."""

    def __init__(self, lading: Installation, settings: LineageSettings, *, every_s: float = EVERY_S) -> None:
        self._lading = lading
        self._settings = settings
        self._every_s = every_s
        self._began_at = lading.clock.now()
        self._versions: dict[JobId, int] = {}
        self._sent: dict[JobId, Sent] = {}
        self._failures = 0
        self._ending = threading.Event()
        self._log = logging.getLogger("lading.lineage")
        self._thread = threading.Thread(target=self._run, name="lading-lineage", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End after the event that is being sent; the next start goes on with the others."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """One round over all jobs of this service that have changed. Raises what the endpoint raises."""
        store, leases = self._lading.store, self._lading.leases
        versions = {job_id: version for job_id, version in store.list_versions().items() if leases.holds(job_id)}
        ended = [job_id for job_id in self._versions if job_id not in versions]
        for job_id in [*versions, *ended]:
            if self._ending.is_set():
                return
            if self._versions.get(job_id) != versions.get(job_id, -1):
                self._catch_up(job_id)
                self._versions[job_id] = versions.get(job_id, -1)
        for job_id in ended:
            del self._versions[job_id]
            self._sent.pop(job_id, None)

    def _catch_up(self, job_id: JobId) -> None:
        store = self._lading.store
        try:
            record = store.load_job_by_id(job_id).record
        except LadingError:
            store.drop_setting(PREFIX + job_id)
            return
        bills = store.list_bills(job_id, limit=MOST_BILLS)[::-1]
        tasks = sorted(store.list_tasks(job_id), key=lambda task: task.task_id)
        sent = self._sent.get(job_id) or self._load(job_id) or self._beginning(bills, tasks)
        new_bills = [each for each in bills if each.seq > sent.seq and each.kind in _LOADS]
        failed = [each for each in tasks if each.task_id > sent.task_id and each.state is TaskState.FAILED]
        if new_bills or failed:
            facts = self._facts(record)
            for task in failed:
                self._send(events_of_failure(facts, task, redacted(task.error)))
                sent = self._save(job_id, replace(sent, task_id=task.task_id))
            for entry in new_bills:
                self._send(events_of_bill(facts, entry))
                sent = self._save(job_id, replace(sent, seq=entry.seq))
        self._sent[job_id] = sent
        if record.is_final:
            store.drop_setting(PREFIX + job_id)

    def _send(self, events: list[Json]) -> None:
        for event in events:
            self._settings.sink.send(event)

    def _save(self, job_id: JobId, sent: Sent) -> Sent:
        # Dies before this: the events were sent and are sent again, with the same run id.
        self._lading.store.write_setting(PREFIX + job_id, json.dumps({"seq": sent.seq, "task_id": sent.task_id}))
        self._sent[job_id] = sent
        return sent

    def _load(self, job_id: JobId) -> Sent | None:
        text = self._lading.store.read_setting(PREFIX + job_id)
        return Sent(**json.loads(text)) if text else None

    def _beginning(self, bills: list[BillEntry], tasks: list[TaskRecord]) -> Sent:
        """What was before this service began is not told."""
        return Sent(
            seq=max((each.seq for each in bills if each.billed_at < self._began_at), default=-1),
            task_id=max((each.task_id for each in tasks if each.created_at < self._began_at), default=0),
        )

    def _facts(self, record: JobRecord) -> JobFacts:
        join = record.spec.join if record.spec is not None else None
        return JobFacts(
            record=record,
            definition=redacted(record.definition),
            namespace=self._settings.namespace,
            target=self._table(record.target),
            joined=self._table(join.table) if join is not None else None,
        )

    def _table(self, name: str) -> TableFacts:
        database, table = split_table(name)
        try:
            opened = self._lading.catalog.open_table(database, table)
            columns = tuple((each.name, str(each.type)) for each in opened.schema())
            return TableFacts(name=name, location=opened.location, columns=columns)
        except LadingError:
            entry = self._lading.store.find_table(database, table)
            return TableFacts(name=name, location=entry.location if entry else "")

    def _run(self) -> None:
        while not self._ending.is_set():
            wait_s = self._every_s
            try:
                self.look()
                self._failures = 0
            except LadingError as error:
                self._failures += 1
                wait_s = min(FIRST_DELAY_S * 2 ** min(self._failures - 1, 10), LONGEST_DELAY_S)
                self._log.warning("lineage could not be sent, tried again in %g s: %s", wait_s, redacted(str(error)))
            except Exception:  # noqa: BLE001 - the door of a thread: the rounds go on
                self._log.exception("lineage could not be sent, trying again")
            self._ending.wait(wait_s)
