"""Results of joins on their way to the table, and rows with results that do not fit to the quarantine.

What a task writes counts when Spark accepts its report. Another attempt at it has names of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.taskcontext import TaskContext

from lading.model.batch import StagedFile
from lading.model.codec import decode
from lading.pipeline.sealing import Sealed
from lading.pipeline.state.jobs import StateJobs, report_batch
from lading.pipeline.state.rules import JoinRule, StateStage, StreamJoinRule
from lading.pipeline.tasks import Quarantine, Writer
from lading.settings import lent_variables

ReportT_co = TypeVar("ReportT_co", covariant=True)
ReportT = TypeVar("ReportT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTools:
    """What a writing task of a joining job is given. Sealed, as all that has keys."""

    open_writer: Callable[[str], Writer]
    open_quarantine: Callable[[str], Quarantine]
    columns: tuple[str, ...]
    """Columns of the table that is loaded into, in order."""
    attempt: str
    identity: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, stage: StateStage, rule: JoinRule | StreamJoinRule, jobs: StateJobs, token: int) -> ResultTools:
        return cls(
            open_writer=stage.open_table,
            open_quarantine=rule.open_quarantine,
            columns=tuple(stage.schema.names),
            attempt=f"{token:016x}",
            identity=dict(jobs.identity),
        )


class ResultFiles:
    """The files of one attempt at a task, each opened with the first row that goes there."""

    def __init__(self, tools: ResultTools, attempt: str) -> None:
        self._tools = tools
        self._attempt = attempt
        self._writer: Writer | None = None
        self._quarantine: Quarantine | None = None
        self.first_error = ""

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows to the table."""
        if rows.num_rows:
            self._writer = self._writer or self._tools.open_writer(self._attempt)
            self._writer.write(rows.select(list(self._tools.columns)))

    def put_aside(self, *, file: str, row: int, reason: str, raw: bytes) -> None:
        """Keep a bad row with its reason."""
        self._quarantine = self._quarantine or self._tools.open_quarantine(self._attempt)
        self._quarantine.add(file=file, row=row, reason=reason, raw=raw)
        self.first_error = self.first_error or f"{file}, row {row}: {reason}"

    def close(self) -> tuple[tuple[StagedFile, ...], tuple[str, ...]]:
        """Finish all files: those of the table, and where the bad rows are."""
        files = tuple(self._writer.close()) if self._writer is not None else ()
        return files, (self._quarantine.close(),) if self._quarantine is not None else ()

    def abort(self) -> None:
        """The attempt failed."""
        if self._writer is not None:
            self._writer.abort()


class Judge(Protocol[ReportT_co]):
    """What a task does with the rows that come out of a join."""

    def take(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""

    def close(self) -> ReportT_co:
        """Finish all files and say what they hold."""


def write_results(
    rows: DataFrame,
    jobs: StateJobs,
    tools: ResultTools,
    key: str,
    *,
    judge: Callable[[ResultFiles], Judge[ReportT]],
    report: type[ReportT],
) -> list[ReportT]:
    """Run the job: what its tasks report."""
    written = rows.mapInArrow(jobs.fit(partial(_write, judge, Sealed.of(tools, key))), "report string")
    return [decode(report, json.loads(row[0]), where="a task's report") for row in jobs.collect(written, key)]


def hinted(rows: DataFrame, spark: SparkSession, size_bytes: int) -> DataFrame:
    """Spark does not know how much comes from Python, takes it for little, and would send all of it everywhere."""
    session: Any = spark._jsparkSession  # noqa: SLF001 - a text such as 10MB, or a number
    small = session.sessionState().conf().autoBroadcastJoinThreshold()
    return rows if size_bytes <= small else rows.hint("merge")


def _write(
    judge: Callable[[ResultFiles], Judge[object]], sealed: Sealed, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    tools: ResultTools = sealed.open()
    context = TaskContext.get()
    files = ResultFiles(tools, f"{tools.attempt}-{context.taskAttemptId() if context else 0}")
    judging = judge(files)
    with lent_variables(tools.identity):
        try:
            for batch in batches:
                judging.take(batch)
            report = judging.close()
        except BaseException:
            # Spark runs the task again under another attempt; the files of this one can never be committed.
            files.abort()
            raise
    yield report_batch(report)
