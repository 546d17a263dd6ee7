"""Which job runs when: many jobs, few threads, one batch at a time per job.

A job is asked whether it is idle by a few pollers, and only a job that has something to do goes to the workers, so a
thousand idle jobs cost a listing each per interval and nothing else. Nothing here is durable: a scheduler that dies is
replaced by one that reads the jobs from the store and opens each again.
"""

from __future__ import annotations

import heapq
import logging
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lading.errors import LadingError, StoreError
from lading.ids import JobId
from lading.jobs.events import Tick
from lading.jobs.pausing import wait_to_resume_s
from lading.jobs.record import JobRecord, JobState
from lading.service.installation import Installation
from lading.service.telemetry.recent import forget_lag

RESCAN_S = 60.0
"""How often the store is read for jobs that nobody told of."""
SETTLE_S = 0.2
"""So long after a look at the jobs a change waits at most: those that come meanwhile are taken in together."""
LOOK_SHARE = 4.0
"""A look that took little is repeated earlier, after so many times what it took."""
RETRY_S = 1.0
POLLERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """One job as the scheduler has it."""

    is_busy: bool
    due_in_s: float


class _Entry:
    __slots__ = ("due_s", "is_busy", "is_gone", "job_id", "turn")

    def __init__(self, job_id: JobId, due_s: float) -> None:
        self.job_id = job_id
        self.due_s = due_s
        self.is_busy = False
        self.is_gone = False
        self.turn = 0


class Scheduler:
    """Runs the jobs of one service until it is closed."""

    def __init__(self, lading: Installation, *, workers: int = 0) -> None:
        self._lading = lading
        self._clock = lading.clock
        self._entries: dict[JobId, _Entry] = {}
        self._heap: list[tuple[float, int, JobId]] = []
        self._turns = 0
        self._changed = threading.Condition()
        self._rescan_s = self._settled_s = 0.0
        self._closing = False
        self._beat_s = self._clock.monotonic_s()
        self._log = logging.getLogger("lading.scheduler")
        count = workers or 2 * (os.cpu_count() or 2) + 4
        self._workers = ThreadPoolExecutor(max_workers=count, thread_name_prefix="lading-batch")
        self._pollers = ThreadPoolExecutor(max_workers=POLLERS, thread_name_prefix="lading-poll")
        self._thread = threading.Thread(target=self._run, name="lading-scheduler", daemon=True)

    def start(self) -> None:
        """Begin. Jobs are opened in the background."""
        self._lading.listeners.append(self.look_again)
        self._lading.leases.start(self.look_again, self._lading.give_back)
        self._thread.start()

    def look_again(self) -> None:
        """Somebody changed a job: read the jobs again, at once, unless they were read a moment ago."""
        with self._changed:
            self._rescan_s = min(self._rescan_s, self._clock.monotonic_s())
            self._changed.notify()

    @property
    def is_alive(self) -> bool:
        """Whether it beats."""
        return self._thread.is_alive() and self._clock.monotonic_s() - self._beat_s < 3 * RESCAN_S

    def snapshot(self) -> Mapping[JobId, Glance]:
        """All jobs it looks after."""
        now = self._clock.monotonic_s()
        with self._changed:
            return {
                entry.job_id: Glance(is_busy=entry.is_busy, due_in_s=max(0.0, entry.due_s - now))
                for entry in self._entries.values()
            }

    def close(self, grace_s: float = 60.0) -> None:
        """Begin no new batch; let those that run end, or cut them off when they take too long."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()
        self._lading.listeners.remove(self.look_again)
        self._pollers.shutdown(wait=True, cancel_futures=True)
        with self._changed:
            busy = [entry.job_id for entry in self._entries.values() if entry.is_busy]
        deadline = self._clock.monotonic_s() + grace_s
        for job_id in busy:
            runner = self._lading.runner(job_id)
            if not runner.wait(max(0.0, deadline - self._clock.monotonic_s())):
                runner.halt()
        self._workers.shutdown(wait=True, cancel_futures=True)

    # The dispatcher.

    def _run(self) -> None:
        while True:
            try:
                if not self._dispatch():
                    return
            except Exception:  # noqa: BLE001 - logged, and tried again
                # Whatever it was, without this thread no job would ever run again.
                self._log.exception("the jobs cannot be looked at, trying again")
                self._sleep(RETRY_S)

    def _dispatch(self) -> bool:
        """Wait for the next thing that is due and hand it on. False: it is time to end."""
        with self._changed:
            self._beat_s = now = self._clock.monotonic_s()
            if self._closing:
                return False
            scan_s = max(self._rescan_s, self._settled_s)
            is_scan_due = now >= scan_s
            entry = None if is_scan_due else self._pop_due(now)
            if is_scan_due:
                self._rescan_s = now + RESCAN_S
            elif entry is None:
                next_s = min(scan_s, self._heap[0][0] if self._heap else scan_s)
                self._changed.wait(max(0.001, next_s - now))
        if is_scan_due:
            try:
                self._scan()
            finally:
                ended = self._clock.monotonic_s()
                self._settled_s = ended + min(SETTLE_S, LOOK_SHARE * (ended - now))
        elif entry is not None:
            self._submit(self._pollers, self._poll, entry)
        return True

    def _pop_due(self, now: float) -> _Entry | None:
        while self._heap and self._heap[0][0] <= now:
            _, turn, job_id = heapq.heappop(self._heap)
            entry = self._entries.get(job_id)
            if entry is not None and entry.turn == turn and not entry.is_busy and not entry.is_gone:
                entry.is_busy = True
                return entry
        return None

    def _scan(self) -> None:
        leases = self._lading.leases
        try:
            leases.look(self._lading.give_back)
        except LadingError as error:
            # The jobs that this service had are still its own, as far as it knows; their batches tell what is wrong.
            leases.tell_failing(error)
            others = set[JobId]() if leases.service_id else leases.held_by_others()
        else:
            others = set[JobId]()
        known = {stored.record.job_id: stored.record for stored in self._lading.store.list_jobs()}
        records = {job_id: record for job_id, record in known.items() if leases.holds(job_id) and job_id not in others}
        now = self._clock.monotonic_s()
        with self._changed:
            gone = [self._entries.pop(job_id) for job_id in self._entries.keys() - records.keys()]
            for lost in gone:
                lost.is_gone = True
            for job_id, record in records.items():
                entry = self._entries.get(job_id)
                wait_s = self._wait_of(record)
                if entry is None:
                    if wait_s is not None:
                        self._entries[job_id] = entry = _Entry(job_id, now)
                        self._set_due(entry, now + wait_s)
                elif not entry.is_busy and wait_s is not None and entry.due_s > now + wait_s and record.is_waiting:
                    self._set_due(entry, now + wait_s)

        for lost in gone:
            if lost.job_id in known or not lost.is_busy:
                self._lose(lost)

    def _lose(self, entry: _Entry) -> None:
        """Another service has the job now. A batch that runs here could not be recorded."""
        forget_lag(self._lading.watches, entry.job_id)  # Files are counted by the service that runs the job.
        if entry.is_busy:
            self._lading.runner(entry.job_id).halt()
        else:
            self._lading.drop_runner(entry.job_id)

    def _wait_of(self, record: JobRecord) -> float | None:
        """How long until a job wants attention; None: not before a person says so."""
        if record.is_final:
            return None
        if record.state is not JobState.PAUSED:
            return 0.0
        if record.reason is None or record.reason.needs_attention:
            return None
        return wait_to_resume_s(record, self._clock.now())

    def _set_due(self, entry: _Entry, due_s: float) -> None:
        self._turns += 1
        entry.due_s, entry.turn = due_s, self._turns
        heapq.heappush(self._heap, (due_s, entry.turn, entry.job_id))
        self._changed.notify()

    # What pollers and workers do.

    def _submit(self, pool: ThreadPoolExecutor, work: Callable[[_Entry], None], entry: _Entry) -> None:
        try:
            pool.submit(self._guarded, work, entry)
        except RuntimeError:  # The pool was closed meanwhile.
            entry.is_busy = False

    def _guarded(self, work: Callable[[_Entry], None], entry: _Entry) -> None:
        try:
            work(entry)
        except StoreError as error:
            self._log.error("job %s could not be recorded, trying again: %s", entry.job_id, error)
            self._lading.drop_runner(entry.job_id)
            self._free(entry, 10 * RETRY_S)
        except Exception:  # noqa: BLE001 - logged, and the job is opened again
            # A fault of one job, or of the store, must not take its thread from the others. Nothing is swallowed
            # that could be a committed row: the table has what it has, and the job is opened again.
            self._log.exception("job %s could not be run, trying again", entry.job_id)
            self._lading.drop_runner(entry.job_id)
            self._free(entry, 10 * RETRY_S)
        if entry.is_gone:
            self._lading.drop_runner(entry.job_id)  # It may have been told to halt.

    def _poll(self, entry: _Entry) -> None:
        if self._lading.leases.is_leaving(entry.job_id):
            self._free(entry, RETRY_S)
            return
        runner = self._lading.runner(entry.job_id)
        if runner.is_idle():
            self._free(entry, runner.interval_s)
        else:
            self._submit(self._workers, self._work, entry)

    def _work(self, entry: _Entry) -> None:
        runner = self._lading.runner(entry.job_id)
        # What was known last is enough here: a turn asks the store before it does anything.
        known = runner.known()
        record = known if known is not None and known.state is not JobState.PAUSED else runner.record()
        if record.state is JobState.PAUSED and self._wait_of(record) == 0.0:
            resumed = runner.apply(Tick(at=self._clock.now()))
            if resumed.state is not JobState.PAUSED:
                self._lading.auto_resumed(resumed)
        began_s = self._clock.monotonic_s()
        has_more = runner.run_once()
        record = runner.known() or runner.record()
        wait_s = self._wait_of(record)
        if wait_s is None or not self._lading.leases.holds(entry.job_id):
            self._free(entry, None)
        elif record.state is JobState.PAUSED:
            self._free(entry, max(wait_s, RETRY_S))
        else:
            # A batch that was not full has loaded what there was: waiting saves tiny commits.
            rest_s = max(0.0, runner.interval_s - (self._clock.monotonic_s() - began_s))
            self._free(entry, max(runner.retry_in_s, 0.0 if has_more and runner.was_full else rest_s))

    def _free(self, entry: _Entry, wait_s: float | None) -> None:
        """The job has had its turn. None: forget it until somebody changes it."""
        with self._changed:
            entry.is_busy = False
            if wait_s is None:
                self._entries.pop(entry.job_id, None)
                # It may have been resumed since it was looked at.
                self._rescan_s = min(self._rescan_s, self._clock.monotonic_s() + SETTLE_S)
                self._changed.notify()
            elif not entry.is_gone:
                self._set_due(entry, self._clock.monotonic_s() + wait_s)

    def _sleep(self, seconds: float) -> None:
        with self._changed:
            if not self._closing:
                self._changed.wait(seconds)
