"""A batch as one Spark job of one stage: read, map, write; reports come back, rows do not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.taskcontext import TaskContext

from lading.errors import StageError
from lading.ids import NewToken
from lading.model.batch import BatchPlan, Report, Split
from lading.model.codec import decode
from lading.pipeline.faults import cause_of
from lading.pipeline.mapping import NOTE, RowMapping, select_lists
from lading.pipeline.reading import LONG_ROWS, MAX_BYTES, read_task
from lading.pipeline.tasks import TaskTools, write_task

_MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What is the same for every batch of a job."""

    mapping: RowMapping
    source: pa.Schema
    """Source columns, without the hidden ones."""
    tools: TaskTools
    pool: str = "default"
    shares_tasks: bool = False
    """One task may read several splits, side by side: as many tasks as Spark can run at once. Else a task each."""


class SparkStager:
    """Implements the coordinator's Stager on a Spark session."""

    def __init__(self, spark: SparkSession, stage: Stage, new_token: NewToken) -> None:
        self._spark = spark
        self._stage = stage
        self._new_token = new_token
        self._takes_long_rows = False
        self._group = f"lading-{new_token():016x}"

    def cancel(self) -> None:
        """Cut off the batch that runs, if one does. Its `stage` raises."""
        self._spark.sparkContext.cancelJobGroup(self._group)

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        # Split numbers index the tuple that tasks are given.
        splits = tuple(sorted(plan.splits, key=lambda split: split.number))
        try:
            rows = self._run(self._tools(splits), len(splits))
        except (Py4JError, Py4JJavaError, PySparkException) as error:
            if LONG_ROWS not in str(error) or self._takes_long_rows:
                raise self._failed(error) from error
            self._take_long_rows()
            return self.stage(plan)
        return [decode(Report, json.loads(row[0]), where="a task's report") for row in rows]

    def _tools(self, splits: tuple[Split, ...]) -> TaskTools:
        return replace(
            self._stage.tools,
            splits=splits,
            batch_id=f"{self._new_token():016x}",
            takes_long_rows=self._takes_long_rows,
        )

    def _take_long_rows(self) -> None:
        """From here on Spark counts the bytes of batches, for this job alone."""
        self._spark = self._spark.newSession()
        self._spark.conf.set(_MAX_BYTES, str(MAX_BYTES))
        self._takes_long_rows = True

    def _run(self, tools: TaskTools, count: int) -> list[tuple[str]]:
        schema = pa.schema([*self._stage.source, pa.field(NOTE, pa.binary())])
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self._stage.pool)
        self._spark.sparkContext.setJobGroup(self._group, f"batch {tools.batch_id}")
        tasks = min(count, self._spark.sparkContext.defaultParallelism) if self._stage.shares_tasks else count
        numbers = self._spark.range(0, count, 1, tasks)
        rows = numbers.mapInArrow(partial(read_task, tools, schema), from_arrow_schema(schema))
        for columns in select_lists(self._stage.mapping, tuple(self._stage.source.names)):
            rows = rows.selectExpr(*columns)
        return rows.mapInArrow(partial(_write, tools), "report string").collect()  # type: ignore[return-value]

    def _failed(self, error: Exception) -> StageError:
        cause = cause_of(error)
        msg = f"The batch could not be staged: {cause}"
        return StageError(
            msg, left="Nothing was committed; the position stands.", todo="It is tried again; see the log for more."
        )


def _write(tools: TaskTools, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    number = context.taskAttemptId() if context else 0
    return write_task(tools, f"{tools.batch_id}-{number}", batches)
