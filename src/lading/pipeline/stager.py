"""A batch as one Spark job of one stage: read, map, write; reports come back, rows do not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Event, Thread, Timer

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.taskcontext import TaskContext

from lading.errors import LINES_FOUND, LINES_IN_FIELDS, SourceError, StageError
from lading.ids import NewToken
from lading.model.batch import BatchPlan, Report, Split
from lading.model.codec import decode
from lading.model.rows import OF_BATCH
from lading.pipeline.checked import CheckedSelect
from lading.pipeline.environment import without_identity
from lading.pipeline.errors import can_heal, cause_of, is_unreadable_file, is_worker_lost, text_of, unfitness_of
from lading.pipeline.executors import watch_waiting
from lading.pipeline.fitting import fit
from lading.pipeline.mapping import NOTE, WATERMARK, RowMapping, select_lists
from lading.pipeline.reading import LONG_ROWS, read_task
from lading.pipeline.sealing import Sealed, new_key, with_key
from lading.pipeline.session import LAST_KEYS, is_local
from lading.pipeline.state.rules import StateStage
from lading.pipeline.tasks import MAX_BYTES, MAX_RECORDS, TaskTools, write_task
from lading.pipeline.vector.arrays import VECTOR_UNSURE
from lading.pipeline.vector.task import vector_task
from lading.settings import lent_variables
from lading.sql.expressions.vector_nodes import Refusal, VectorPlan

_LONG_ROWS = re.compile(LONG_ROWS + r": (\d+) rows take (\d+) bytes")
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_UNSURE = re.compile(VECTOR_UNSURE + r": ([^\n]*?)\. Nothing was committed")
_SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "utc",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.legacy.timeParserPolicy": "corrected",
}
"""With which the vector path gives what Spark does."""
_UNREADABLE = (
    "Replace the file, or leave it out (SKIP FILE 'name' FOR JOB j), then RESUME the job. "
    '"file.on_error" = "SKIP" puts such files aside by itself.'
)
_CANCEL_AGAIN_S = 0.2
_UNASKED = Refusal(part="job", why="nobody looked whether it can")
_COLUMN_BYTES = 16
"""What a value may take, before any was seen."""


def records_for(row_bytes: int) -> int:
    """How many rows of a length one batch may have."""
    return max(1, min(MAX_RECORDS, MAX_BYTES // max(1, row_bytes)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What is the same for every batch of a job."""

    mapping: RowMapping
    source: pa.Schema
    """Source columns, without the hidden ones."""
    tools: TaskTools
    pool: str = "default"
    most_tasks: int | None = None
    """One task may read several splits, side by side: at most so many tasks, and as Spark can run at once. None: a task
    each."""
    timeout_s: float = 0.0
    """How long a batch may take; 0: as long as it likes."""
    timeout_is: str = "timeout"
    """In the words of those who can change it."""
    reads_as_service: bool = False
    """The source has no keys of its own: it is read with the identity of the service."""
    writes_as_service: bool = False
    """The same for the files of the table."""
    state: StateStage | None = None
    """What is kept of the rows between batches; None: nothing."""
    of_batch: tuple[str, ...] = ()
    """Source columns that have one value for all rows of a batch."""
    libraries: tuple[str, ...] = ()
    """What its tasks import, beside what all do."""
    vector: VectorPlan | Refusal = _UNASKED
    """The mapping for Arrow, or why Spark has to do it."""

    def shares(self, tools: TaskTools) -> tuple[TaskTools, TaskTools]:
        """What those who read and those who write are given: the service's identity only where it is needed."""
        own = replace(tools, identity=without_identity(tools.identity))
        return tools if self.reads_as_service else own, tools if self.writes_as_service else own


class SparkStager:
    """Implements the coordinator's Stager on a Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        stage: Stage,
        new_token: NewToken,
        on_wait: Callable[[str], None] = lambda message: None,
        on_unsure: Callable[[Refusal], None] = lambda refusal: None,
    ) -> None:
        self.spark = self._spark = spark
        self._on_wait, self._on_unsure = on_wait, on_unsure
        self._stage = stage
        self._new_token = new_token
        self._max_records = records_for(_COLUMN_BYTES * (len(stage.source) + len(stage.mapping.columns)))
        self._session: SparkSession | None = None
        self._vector = _session_refusal(spark) or stage.vector
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
            raise (self._late() if self._is_late else error) from error
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
            if isinstance(self._vector, VectorPlan) and (unsure := _UNSURE.search(text_of(error))):
                self._vector = Refusal(part="a batch", why=f"it had {unsure[1]}")
                self._on_unsure(self._vector)
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
        return replace(
            self._stage.tools,
            splits=splits,
            batch_id=f"{self._new_token():016x}",
            max_records=self._max_records,
            watermark_us=plan.positions.watermark_us,
            latest_us=plan.latest_us,
            of_batch={name: batch_value(name, plan) for name in self._stage.of_batch},
        )

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
        hidden = [pa.field(WATERMARK, pa.int64())] if self._stage.mapping.event is not None else []
        schema = pa.schema([*self._stage.source, *hidden, pa.field(NOTE, pa.binary())])
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self._stage.pool)
        self._spark.sparkContext.setJobGroup(self._group, f"batch {tools.batch_id}")
        most = self._stage.most_tasks
        tasks = count if most is None else min(count, self._spark.sparkContext.defaultParallelism, most)
        session = self._session_of_job() if isinstance(self._vector, Refusal) else self._spark
        numbers = session.range(0, count, 1, tasks)
        # Executors elsewhere have an identity of their own.
        lent = tools if is_local(self._spark) else replace(tools, identity={})
        key = new_key()
        to_read, to_write = (Sealed.of(share, key) for share in self._stage.shares(lent))
        fitted = partial(fit, session, libraries=self._stage.libraries)
        if isinstance(self._vector, VectorPlan):
            staged = numbers.mapInArrow(fitted(partial(_vector, to_write, self._vector, schema)), "report string")
            with with_key(session, key):
                return staged.collect()  # type: ignore[return-value]
        rows = numbers.mapInArrow(fitted(partial(_read, to_read, schema)), from_arrow_schema(schema))
        rows = self._select(
            rows, select_lists(self._stage.mapping, tuple(self._stage.source.names), hidden=self._stage.of_batch)
        )
        written = rows.mapInArrow(fitted(partial(_write, to_write)), "report string")
        with with_key(session, key):
            return written.collect()  # type: ignore[return-value]

    def _failed(self, error: Exception) -> SourceError:
        if self._is_late:
            return self._late()
        return lost_worker(error) if is_worker_lost(error) else failed_batch(error)

    def _late(self) -> StageError:
        msg = f"The batch took longer than {self._stage.timeout_s:g} seconds, which is its {self._stage.timeout_is}"
        todo = "It is tried again. Give it more time, or make its batches smaller (ALTER JOB, ALTER ROUTINE LOAD)."
        return StageError(msg, left="Nothing of it was committed.", todo=todo)


def batch_value(name: str, plan: BatchPlan) -> pa.Scalar:
    """What the bill will say, too: a task that runs again writes the same."""
    if name == OF_BATCH:
        return pa.scalar(plan.seq, pa.int64())
    return pa.scalar(plan.planned_at, pa.timestamp("us", tz="UTC"))


def _session_refusal(spark: SparkSession) -> Refusal | None:
    """Settings of Spark that change what expressions give: the vector path knows what they give without them."""
    for name, value in _SETTINGS.items():
        found = spark.conf.get(name, value)
        if found is None or found.lower() != value:
            return Refusal(part="setting", why=f"{name} is {found}")
    return None


def lost_worker(error: Exception) -> StageError:
    """A worker or an executor ended while it read and wrote the rows of the batch."""
    msg = f"A worker of the batch was killed or ran out of memory: {cause_of(error)}"
    left, todo = "Nothing was committed; the position is unchanged.", "It is tried again with fewer rows."
    return StageError(msg, left=left, todo=todo, code="WorkerLost")


def failed_batch(error: Exception) -> SourceError:
    """What Spark said, for people; with a class that says whether it is worth trying again."""
    left = "Nothing was committed; the position is unchanged."
    if unfit := unfitness_of(error):
        todo = "Give it what the service has (`lading package`, docs/cluster.md), then RESUME the job."
        return SourceError(unfit, code="UnfitExecutor", left=left, todo=todo)
    msg = f"The batch could not be staged: {cause_of(error)}"
    if LINES_FOUND in msg:
        return StageError(msg, code=LINES_IN_FIELDS, left=left, todo="It is read by one task from now on.")
    if is_unreadable_file(error):
        return SourceError(msg, code="FileUnreadable", left=left, todo=_UNREADABLE)
    if not can_heal(error):
        return SourceError(msg, left=left, todo="Repair what it reads, then RESUME the job.")
    return StageError(msg, left=left, todo="It is tried again; see the log for more.")


def _read(sealed: Sealed, schema: pa.Schema, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    tools: TaskTools = sealed.open()
    with lent_variables(tools.identity):
        yield from read_task(tools, schema, numbers)


def _vector(
    sealed: Sealed, plan: VectorPlan, schema: pa.Schema, numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    tools: TaskTools = sealed.open()
    with lent_variables(tools.identity):
        yield from vector_task(tools, plan, schema, _attempt(tools), numbers)


def _attempt(tools: TaskTools) -> str:
    context = TaskContext.get()
    return f"{tools.batch_id}-{context.taskAttemptId() if context else 0}"


def _write(sealed: Sealed, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    tools: TaskTools = sealed.open()
    with lent_variables(tools.identity):
        yield from write_task(tools, _attempt(tools), batches)
