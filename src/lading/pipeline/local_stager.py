"""A batch of the vector path, staged by processes of this machine: no row of it needs Spark, so nobody waits for it."""

from __future__ import annotations

import json
import pickle
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from lading.errors import SourceError, StageError
from lading.ids import NewToken
from lading.model.batch import BatchPlan, Report
from lading.model.codec import decode
from lading.pipeline.errors import is_worker_lost
from lading.pipeline.local_pool import CUT_OFF, LocalPool, TaskFailedError, ask, cut_off
from lading.pipeline.stage import Stage, batch_tools, failed_batch, late_batch, lost_worker, task_schema, unsure_of
from lading.sql.expressions.vector_nodes import Refusal


def can_send(stage: Stage) -> bool:
    """Whether the tasks of a job can be sent to another process by plain pickle; Spark sends functions that are made
    at run time, too."""
    try:
        pickle.dumps((stage.tools, stage.vector, task_schema(stage)))
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


class LocalStager:
    """Implements the coordinator's Stager. One batch at a time; `cancel` may be called by any thread."""

    def __init__(self, pool: LocalPool, stage: Stage, new_token: NewToken) -> None:
        self._pool = pool
        self._stage = stage
        self._new_token = new_token
        self._lock = threading.Lock()
        self._workers = set[socket.socket]()
        self._is_cut_off = self._is_late = self._is_cancelled = False

    def cancel(self) -> None:
        """Cut off the batch that runs, if one does. Its `stage` raises."""
        self._is_cancelled = True
        self._cut_off()

    def _cut_off(self) -> None:
        with self._lock:
            self._is_cut_off = True
            for worker in self._workers:
                cut_off(worker)

    def stage(self, plan: BatchPlan) -> Sequence[Report] | Refusal:
        """The reports, or why Spark has to stage this batch; nothing is committed then. Raises as a stager does."""
        self._is_cut_off = self._is_late = self._is_cancelled = False
        timer = threading.Timer(self._stage.timeout_s, self._end_late) if self._stage.timeout_s else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            return [decode(Report, json.loads(text), where="a task's report") for text in self._run(plan)]
        except TaskFailedError as error:
            if unsure := unsure_of(error):
                return unsure
            raise self._failed(error) from error
        finally:
            if timer is not None:
                timer.cancel()

    def _end_late(self) -> None:
        self._is_late = True
        self._cut_off()

    def _failed(self, error: TaskFailedError) -> SourceError:
        if self._is_late:
            return late_batch(self._stage)
        if self._is_cancelled:
            # Nothing that it read ended its processes.
            return StageError(
                CUT_OFF, left="Nothing was committed; the position is unchanged.", todo="It is read again."
            )
        return lost_worker(error) if is_worker_lost(error) else failed_batch(error)

    def _run(self, plan: BatchPlan) -> list[str]:
        tasks = self._tasks(plan)
        with ThreadPoolExecutor(max_workers=min(len(tasks), self._pool.slots)) as threads:
            futures = [threads.submit(self._ask, task) for task in tasks]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            failed = next((future for future in futures if future in done and future.exception() is not None), None)
            if failed is not None:
                self._cut_off()  # What the others write can never be committed.
                failed.result()
            return [report for future in futures for report in future.result()]

    def _tasks(self, plan: BatchPlan) -> list[bytes]:
        """What each task is given. Attempts have names of their own: the batch has a new one each time."""
        splits = tuple(sorted(plan.splits, key=lambda split: split.number))
        batch_id = f"{self._new_token():016x}"
        _, tools = self._stage.shares(batch_tools(self._stage, splits, plan, batch_id))
        schema, count = task_schema(self._stage), len(splits)
        most = self._stage.most_tasks
        tasks = count if most is None else min(count, self._pool.slots, most)
        ranges = [range(number * count // tasks, (number + 1) * count // tasks) for number in range(tasks)]
        return [
            pickle.dumps((tools, self._stage.vector, schema, f"{batch_id}-{number}", list(numbers)))
            for number, numbers in enumerate(ranges)
        ]

    def _ask(self, task: bytes) -> list[str]:
        with self._pool.slot(lambda: self._is_cut_off), self._pool.worker() as worker:
            with self._lock:
                if self._is_cut_off:
                    raise TaskFailedError(CUT_OFF)
                self._workers.add(worker)
            try:
                return ask(worker, task)
            finally:
                with self._lock:
                    self._workers.discard(worker)
