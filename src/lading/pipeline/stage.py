"""What is the same for every batch of a job, and what its failures mean, wherever it is staged; without Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from lading.errors import LINES_FOUND, LINES_IN_FIELDS, SourceError, StageError
from lading.model.batch import BatchPlan, Split
from lading.model.rows import OF_BATCH
from lading.pipeline.environment import without_identity
from lading.pipeline.errors import can_heal, cause_of, is_unreadable_file, text_of, unfitness_of
from lading.pipeline.mapping import NOTE, WATERMARK, RowMapping
from lading.pipeline.state.rules import StateStage
from lading.pipeline.tasks import TaskTools
from lading.pipeline.vector.arrays import VECTOR_UNSURE
from lading.sql.expressions.vector_nodes import Refusal, VectorPlan

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
_UNASKED = Refusal(part="job", why="nobody looked whether it can")


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
    """Which libraries its tasks import, beside those that all do."""
    modules: tuple[str, ...] = ()
    """What of Lading they import, beside what all do."""
    vector: VectorPlan | Refusal = _UNASKED
    """The mapping for Arrow, or why Spark has to do it."""

    def shares(self, tools: TaskTools) -> tuple[TaskTools, TaskTools]:
        """What those who read and those who write are given: the service's identity only where it is needed."""
        own = replace(tools, identity=without_identity(tools.identity))
        return tools if self.reads_as_service else own, tools if self.writes_as_service else own


def batch_value(name: str, plan: BatchPlan) -> pa.Scalar:
    """What the bill will say, too: a task that runs again writes the same."""
    if name == OF_BATCH:
        return pa.scalar(plan.seq, pa.int64())
    return pa.scalar(plan.planned_at, pa.timestamp("us", tz="UTC"))


def batch_tools(stage: Stage, splits: tuple[Split, ...], plan: BatchPlan, batch_id: str) -> TaskTools:
    """What the tasks of a batch are given. Split numbers index the splits."""
    return replace(
        stage.tools,
        splits=splits,
        batch_id=batch_id,
        watermark_us=plan.positions.watermark_us,
        latest_us=plan.latest_us,
        of_batch={name: batch_value(name, plan) for name in stage.of_batch},
    )


def task_schema(stage: Stage) -> pa.Schema:
    """What a task reads: the columns of the source, and notes about rows."""
    hidden = [pa.field(WATERMARK, pa.int64())] if stage.mapping.event is not None else []
    return pa.schema([*stage.source, *hidden, pa.field(NOTE, pa.binary())])


def settings_refusal(told: Callable[[str], str | None]) -> Refusal | None:
    """Settings of Spark that change what expressions give: the vector path knows what they give without them."""
    for name, value in _SETTINGS.items():
        found = told(name)
        if found is not None and found.lower() != value:
            return Refusal(part="setting", why=f"{name} is {found}")
    return None


def unsure_of(error: Exception) -> Refusal | None:
    """Why the vector path cannot map a batch, when that is why a task failed."""
    found = _UNSURE.search(text_of(error))
    return Refusal(part="a batch", why=f"it had {found[1]}") if found else None


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


def late_batch(stage: Stage) -> StageError:
    """It took longer than somebody gave it."""
    msg = f"The batch took longer than {stage.timeout_s:g} seconds, which is its {stage.timeout_is}"
    todo = "It is tried again. Give it more time, or make its batches smaller (ALTER JOB, ALTER ROUTINE LOAD)."
    return StageError(msg, left="Nothing of it was committed.", todo=todo)
