"""Spark jobs over files of state: they read files, merge in Spark SQL, write files, and return reports.

What they read never changes, so a task that runs twice does the same twice; only the reports of accepted attempts are
collected, and files of others are named by nobody.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.taskcontext import TaskContext

from lading.errors import SourceError
from lading.model.batch import StagedFile, StateFile
from lading.model.codec import decode, encode
from lading.pipeline.fitting import Task, fit
from lading.pipeline.mapping import NOTE
from lading.pipeline.notes import binaries, parse_bad
from lading.pipeline.sealing import Sealed, new_key, with_key
from lading.pipeline.session import DEFAULTS
from lading.pipeline.stage import failed_batch
from lading.pipeline.state.files import StatePlace, StateWriter
from lading.pipeline.state.selected import ALL_TIMES, Among, Ranked, Times, Wanted, read_rows
from lading.pipeline.tasks import Writer
from lading.settings import lent_variables

TABLE, STATE, LEFT, NOTHING, BAD_RESULT = 0, 1, 2, 3, 4
MOST_TASKS = 64
"""As many as there are buckets of keys."""
_TASKS = "spark.sql.shuffle.partitions"
FATE = "__fate"
"""What a merging task does with a row: write it to the table and remember it, only remember it, or decide later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What one accepted task of a merging job wrote."""

    files: tuple[StagedFile, ...] = ()
    state: tuple[StateFile, ...] = ()
    left: tuple[StateFile, ...] = ()
    """Rows that are decided in another round."""
    written: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTools:
    """What a writing task of a merging job is given. Sealed, as all that has keys."""

    place: StatePlace
    attempt: str
    open_writer: Callable[[str], Writer]
    columns: tuple[str, ...]
    """Columns of the table, in order."""
    shown: tuple[str, ...]
    """The same as the job's rows have them."""
    remembered: tuple[tuple[str, str], ...] = ()
    """What is remembered of a row: its column, and what it is called in the state."""
    left: tuple[str, ...] = ()
    """What is handed on of a row that is decided later."""
    identity: dict[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateJobs:
    """Runs such jobs in a session."""

    spark: SparkSession
    place: StatePlace
    group: str
    pool: str
    identity: dict[str, str] = field(default_factory=dict, repr=False)
    libraries: tuple[str, ...] = ()
    """What tasks import, beside what all do."""

    def fit(self, task: Task) -> Task:
        """The task, for executors that may not be fit for it."""
        return fit(self.spark, task, self.libraries)

    def read(
        self,
        files: Sequence[Ranked],
        schema: pa.Schema,
        key: str,
        *,
        buckets: int = -1,
        times: Times = ALL_TIMES,
        among: Among | None = None,
    ) -> DataFrame:
        """The rows of files, those of some buckets, times and keys only. Nothing is read before a job runs."""
        session = self.spark
        tasks = max(1, min(len(files), 2 * session.sparkContext.defaultParallelism))
        numbers = session.range(0, len(files), 1, tasks)
        wanted = Wanted(schema=schema, buckets=buckets, times=times, among=among)
        sealed = Sealed.of((self.place, tuple(files), wanted, self.identity), key)
        return numbers.mapInArrow(self.fit(partial(_read, sealed)), from_arrow_schema(schema))

    def write(self, rows: DataFrame, tools: MergeTools, key: str) -> list[Merged]:
        """Run the job: what its tasks wrote."""
        written = rows.mapInArrow(self.fit(partial(_write, Sealed.of(tools, key))), "report string")
        return [decode(Merged, json.loads(row[0]), where="a task's report") for row in self.collect(written, key)]

    def collect(self, rows: DataFrame, key: str) -> list[Any]:
        """Run it. Raises StageError."""
        context = self.spark.sparkContext
        if context.getConf().get(_TASKS) == DEFAULTS[_TASKS]:  # Else somebody said how many they want.
            self.spark.conf.set(_TASKS, min(MOST_TASKS, max(2, context.defaultParallelism)))
        context.setLocalProperty("spark.scheduler.pool", self.pool)
        context.setJobGroup(self.group, "merging with the state")
        try:
            with with_key(self.spark, key):
                return list(rows.collect())
        except (Py4JError, Py4JJavaError, PySparkException) as error:
            raise failed_batch(error) from error

    def new_key(self) -> str:
        return new_key()


def _read(sealed: Sealed, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    place, files, wanted, lent = sealed.open()
    with lent_variables(lent):
        ranked = [files[number] for batch in numbers for number in batch.column(0).to_pylist()]
        yield from read_rows(place, ranked, wanted)


def _write(sealed: Sealed, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    tools: MergeTools = sealed.open()
    context = TaskContext.get()
    attempt = f"{tools.attempt}-{context.taskAttemptId() if context else 0}"
    with lent_variables(tools.identity):
        yield _written(tools, attempt, batches)


def _check_results(batch: pa.RecordBatch) -> None:
    """A result stands for many rows: one that does not fit the table is not put aside, it stops the job."""
    bad = batch.filter(pc.equal(batch.column(FATE), BAD_RESULT))
    if bad.num_rows:
        reason, _ = parse_bad(bad.column(NOTE)[0].as_py())
        msg = f"A result of a window does not fit the table: {reason}"
        raise SourceError(msg, left="Nothing was committed.", todo="ALTER the job or the table, then RESUME.")


def _written(tools: MergeTools, attempt: str, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch:
    table: Writer | None = None
    state, left = StateWriter(tools.place, f"{attempt}-s"), StateWriter(tools.place, f"{attempt}-l")
    written = 0
    try:
        for batch in batches:
            fates = batch.column(FATE)
            _check_results(batch)
            for fate in (TABLE, STATE, LEFT):
                rows = batch.filter(pc.equal(fates, fate))
                if not rows.num_rows:
                    continue
                if fate == TABLE:
                    written += rows.num_rows
                    table = table or tools.open_writer(attempt)
                    table.write(rows.select(list(tools.shown)).rename_columns(list(tools.columns)))
                if fate in (TABLE, STATE) and tools.remembered:
                    kept = rows.select([name for name, _ in tools.remembered])
                    state.write(kept.rename_columns([name for _, name in tools.remembered]))
                if fate == LEFT:
                    left.write(rows.select(list(tools.left)))
        report = Merged(
            files=table.close() if table is not None else (),
            state=state.close(),
            left=left.close(),
            written=written,
        )
    except BaseException:
        # Spark runs the task again under another attempt; the files of this one can never be committed.
        for writer in (table, state, left):
            if writer is not None:
                writer.abort()
        raise
    return report_batch(report)


def report_batch(report: object) -> pa.RecordBatch:
    """What a task tells the driver, as the one row that comes out of it."""
    text = json.dumps(encode(report)).encode()
    return pa.RecordBatch.from_arrays([binaries([text]).view(pa.string())], names=["report"])
