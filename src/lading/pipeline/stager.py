"""A batch as one Spark job of one stage: read, map, write; reports come back, rows do not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Event, Thread, Timer

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.taskcontext import TaskContext

from lading.errors import SourceError, StageError
from lading.ids import NewToken
from lading.model.batch import BatchPlan, Report, Split
from lading.model.codec import decode
from lading.pipeline.checked import CheckedSelect, is_same_each_time
from lading.pipeline.errors import is_worker_lost, text_of
from lading.pipeline.executors import watch_waiting
from lading.pipeline.fitting import fit
from lading.pipeline.kept_frames import KeptFrames
from lading.pipeline.mapping import select_lists
from lading.pipeline.notes import whole_numbers
from lading.pipeline.reading import LONG_ROWS, read_task
from lading.pipeline.sealing import TO_READ, TO_WRITE, Beside, Sealed, new_key, with_key
from lading.pipeline.session import LAST_KEYS, is_local
from lading.pipeline.stage import (
    Stage,
    batch_tools,
    failed_batch,
    late_batch,
    lost_worker,
    settings_refusal,
    task_schema,
    unsure_of,
)
from lading.pipeline.tasks import MAX_BYTES, MAX_RECORDS, TaskTools, write_task
from lading.pipeline.vector.task import vector_task
from lading.settings import lent_variables
from lading.sql.expressions.vector_nodes import Refusal, VectorPlan

_LONG_ROWS = re.compile(LONG_ROWS + r": (\d+) rows take (\d+) bytes")
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_CANCEL_AGAIN_S = 0.2
_COLUMN_BYTES = 16
"""What a value may take, before any was seen."""
_MOST_BESIDE = 16 * 1024 * 1024
"""What may travel beside functions, which is sent with each task; more is sent in the function, once."""
_Given = Sealed | Beside


def records_for(row_bytes: int) -> int:
    """How many rows of a length one batch may have."""
    return max(1, min(MAX_RECORDS, MAX_BYTES // max(1, row_bytes)))


class SparkStager:
    """Implements the coordinator's Stager on a Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        stage: Stage,
        new_token: NewToken,
        on_wait: Callable[[str], None] = lambda message: None,
        on_unsure: Callable[[Refusal], None] = lambda refusal: None,
        frames: KeptFrames | None = None,
    ) -> None:
        self.spark = self._spark = spark
        self._on_wait, self._on_unsure = on_wait, on_unsure
        self._stage = stage
        self._frames = frames or KeptFrames()
        self._new_token = new_token
        self._max_records = records_for(_COLUMN_BYTES * (len(stage.source) + len(stage.mapping.columns)))
        self._session: SparkSession | None = None
        self._vector = settings_refusal(lambda name: spark.conf.get(name, None)) or stage.vector
        """How batches are mapped. A batch of which the vector path was not sure ends it."""
        self._select = CheckedSelect()
        self.group = self._group = f"lading-{new_token():016x}"
        self._is_late = False
        self._ended = Event()
        """Of the batch that runs."""
        self._ended.set()

    def cancel(self) -> None:
        """Cut off the batch that runs, if one does. Its `stage` raises."""
        ended = self._ended
        if not ended.is_set():
            Thread(target=self._cancel_until, args=(ended,), name="lading-cancel", daemon=True).start()

    def _cancel_until(self, ended: Event) -> None:
        """Spark ends the jobs that it knows now; while it still plans a batch it knows none: one call may miss it."""
        while not ended.is_set():
            try:
                self._spark.sparkContext.cancelJobGroup(self._group)
            except (Py4JError, OSError):
                return  # Spark itself has ended, and the batch with it.
            ended.wait(_CANCEL_AGAIN_S)

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        with self.watched():
            return self._stage_in_time(plan)

    @property
    def session(self) -> SparkSession:
        """The session of the job's batches."""
        return self._session_of_job()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Within this, work on Spark can be cut off, and is when it takes too long."""
        self._is_late = False
        self._ended = Event()
        timer = Timer(self._stage.timeout_s, self._end_late) if self._stage.timeout_s else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        watch_waiting(self._spark, self._ended, self._on_wait)
        try:
            yield
        except StageError as error:
            raise (late_batch(self._stage) if self._is_late else error) from error
        finally:
            self._ended.set()
            if timer is not None:
                timer.cancel()

    def _end_late(self) -> None:
        self._is_late = True
        self.cancel()

    def _stage_in_time(self, plan: BatchPlan) -> Sequence[Report]:
        # Split numbers index the tuple that tasks are given.
        splits = tuple(sorted(plan.splits, key=lambda split: split.number))
        try:
            rows = self._run(self._tools(splits, plan), len(splits))
        except (Py4JError, Py4JJavaError, PySparkException) as error:
            if isinstance(self._vector, VectorPlan) and (unsure := unsure_of(error)):
                self._vector = unsure
                self._on_unsure(unsure)
                return self._stage_in_time(plan)
            found = _LONG_ROWS.search(text_of(error))
            if found is None:
                raise self._failed(error) from error
            # Twice as much room as these rows take: others may be longer. Less each time, and one is never too many.
            self._max_records = min(self._max_records - 1, records_for(2 * int(found[2]) // int(found[1])))
            self._session = None
            return self._stage_in_time(plan)
        return [decode(Report, json.loads(row[0]), where="a task's report") for row in rows]

    def _tools(self, splits: tuple[Split, ...], plan: BatchPlan) -> TaskTools:
        tools = batch_tools(self._stage, splits, plan, f"{self._new_token():016x}")
        return replace(tools, max_records=self._max_records)

    def _session_of_job(self) -> SparkSession:
        """The session, or one beside it with smaller batches, for this job alone; also beside one that somebody else
        made and that reads JSON in another way."""
        if self._max_records == MAX_RECORDS and self._spark.conf.get(LAST_KEYS, "false") == "true":
            return self._spark
        if self._session is None:
            self._session = self._spark.newSession()
            for name, value in self._spark.conf.getAll.items():
                if self._session.conf.isModifiable(name):
                    self._session.conf.set(name, value)
            self._session.conf.set(_BATCH_ROWS, self._max_records)
            self._session.conf.set(LAST_KEYS, "true")
        return self._session

    def _run(self, tools: TaskTools, count: int) -> list[tuple[str]]:
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self._stage.pool)
        self._spark.sparkContext.setJobGroup(self._group, f"batch {tools.batch_id}")
        most = self._stage.most_tasks
        tasks = count if most is None else min(count, self._spark.sparkContext.defaultParallelism, most)
        session = self._session_of_job() if isinstance(self._vector, Refusal) else self._spark
        # Executors elsewhere have an identity of their own.
        lent = tools if is_local(self._spark) else replace(tools, identity={})
        key = new_key()
        to_read, to_write = (Sealed.of(share, key) for share in self._stage.shares(lent))
        beside = {TO_READ: to_read} if isinstance(self._vector, VectorPlan) else {TO_READ: to_read, TO_WRITE: to_write}
        if tasks * sum(len(each.closed) for each in beside.values()) <= _MOST_BESIDE:
            # Another session, or another way of mapping than before, is another frame.
            name = (self._group, id(session), tasks, isinstance(self._vector, VectorPlan))
            with with_key(session, key, beside):
                lists = () if isinstance(self._vector, VectorPlan) else self._lists()
                return self._frames.run(
                    name,
                    lambda: self._frame(session, tasks, Beside(TO_READ), Beside(TO_WRITE)),
                    lambda frame: is_same_each_time(frame, lists),
                )
        with with_key(session, key):
            return self._frame(session, tasks, to_read, to_write).collect()  # type: ignore[return-value]

    def _frame(self, session: SparkSession, tasks: int, to_read: _Given, to_write: _Given) -> DataFrame:
        """A batch as Spark plans it: so many tasks, each of which is told its number."""
        schema = task_schema(self._stage)
        numbers = session.range(0, tasks, 1, tasks)
        fitted = partial(fit, session, libraries=self._stage.libraries)
        if isinstance(self._vector, VectorPlan):
            task = partial(_vector, to_read, self._vector, schema, tasks)
            return numbers.mapInArrow(fitted(task), "report string")
        rows = numbers.mapInArrow(fitted(partial(_read, to_read, schema, tasks)), from_arrow_schema(schema))
        rows = self._select(rows, self._lists())
        return rows.mapInArrow(fitted(partial(_write, to_write)), "report string")

    def _lists(self) -> Sequence[Sequence[str]]:
        return select_lists(self._stage.mapping, tuple(self._stage.source.names), hidden=self._stage.of_batch)

    def _failed(self, error: Exception) -> SourceError:
        if self._is_late:
            return late_batch(self._stage)
        return lost_worker(error) if is_worker_lost(error) else failed_batch(error)


def _read(given: _Given, schema: pa.Schema, tasks: int, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    tools: TaskTools = given.open()
    with lent_variables(tools.identity):
        yield from read_task(tools, schema, _splits_of(tools, tasks, numbers))


def _vector(
    given: _Given, plan: VectorPlan, schema: pa.Schema, tasks: int, numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    tools: TaskTools = given.open()
    with lent_variables(tools.identity):
        yield from vector_task(tools, plan, schema, _attempt(tools), _splits_of(tools, tasks, numbers))


def _splits_of(tools: TaskTools, tasks: int, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """From the numbers of tasks to those of their splits: an even share for each, side by side."""
    count = len(tools.splits)
    for batch in numbers:
        shares = [range(task * count // tasks, (task + 1) * count // tasks) for task in batch.column(0).to_pylist()]
        splits = [number for share in shares for number in share]
        yield pa.RecordBatch.from_arrays([whole_numbers(splits)], names=["id"])


def _attempt(tools: TaskTools) -> str:
    context = TaskContext.get()
    return f"{tools.batch_id}-{context.taskAttemptId() if context else 0}"


def _write(given: _Given, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    tools: TaskTools = given.open()
    with lent_variables(tools.identity):
        yield from write_task(tools, _attempt(tools), batches)
