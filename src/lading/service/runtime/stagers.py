"""What stages the batches of a job: Spark, started when it is first needed, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lading.ids import new_token
from lading.model.batch import BatchPlan, Report
from lading.model.state import StateChange, StateRef
from lading.sql.expressions.vector_nodes import Refusal, VectorPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lading.pipeline.kept_frames import KeptFrames
    from lading.pipeline.local_pool import LocalPool
    from lading.pipeline.local_stager import LocalStager
    from lading.pipeline.stage import Stage
    from lading.pipeline.stager import SparkStager


@dataclass(frozen=True, slots=True)
class SparkPorts:
    """Where batches are staged."""

    session: Callable[[], SparkSession]
    near: Callable[[], LocalPool | None] = lambda: None
    """Processes of this machine that stand in for Spark; None: Spark is to do it."""
    begin: Callable[[], None] = lambda: None
    """Start Spark beside what goes on, if it was not started."""
    frames: KeptFrames | None = None
    """What Spark has planned for all jobs; None: each keeps its own."""


class LazyStager:
    """Has Spark start while the source is listed, unless the rows of the job are mapped in Arrow: they need none, as
    long as nobody else has started it."""

    def __init__(
        self,
        spark: SparkPorts,
        stage: Stage,
        on_wait: Callable[[str], None] = lambda message: None,
        on_unsure: Callable[[Refusal], None] = lambda refusal: None,
    ) -> None:
        """`on_wait` is told what a batch waits for, and an empty text once it does not any more; `on_unsure` why a job
        gave up the vector path."""
        self._spark = spark
        self._stage = stage
        self._on_wait = on_wait
        self._on_unsure = on_unsure
        self._made: SparkStager | None = None
        self._local: LocalStager | None = None
        self._is_near = isinstance(stage.vector, VectorPlan) and _can_send(stage)
        if (near := self._pool()) is not None:
            # It imports what it needs while the source is listed.
            near.start((*stage.modules, *(name.replace("-", "_") for name in stage.libraries)))
        else:
            spark.begin()

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        from lading.pipeline.quarantine import check_seen

        reports = self._staged(plan)
        check_seen(place for report in reports for place in report.quarantine)
        return reports

    def _staged(self, plan: BatchPlan) -> Sequence[Report]:
        if (pool := self._pool()) is None:
            return self._stager().stage(plan)
        from lading.pipeline.local_stager import LocalStager

        if self._local is None:
            self._local = LocalStager(pool, self._stage, new_token)
        told = self._local.stage(plan)
        if not isinstance(told, Refusal):
            return told
        self._stage, self._is_near = replace(self._stage, vector=told), False
        self._on_unsure(told)
        return self._stager().stage(plan)

    def _pool(self) -> LocalPool | None:
        return self._spark.near() if self._is_near else None

    def _stager(self) -> SparkStager:
        from lading.pipeline.stager import SparkStager

        spark = self._spark.session()
        if self._made is None or self._made.spark is not spark:  # Spark may have been started again.
            told = (self._on_wait, self._on_unsure)
            self._made = SparkStager(spark, self._stage, new_token, *told, frames=self._spark.frames)
        return self._made

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        """For loads with state: what becomes of the rows that were read."""
        from lading.pipeline.quarantine import check_seen
        from lading.pipeline.state.merging import new_merger

        stager = self._stager()
        with stager.watched():
            change = new_merger(stager, self._stage, new_token).merge(plan, reports, state)
        check_seen(change.quarantine)
        return change

    def cancel(self) -> None:
        for made in (self._local, self._made):
            if made is not None:
                made.cancel()


def _can_send(stage: Stage) -> bool:
    from lading.pipeline.local_stager import can_send

    return can_send(stage)


class NoStager:
    """Stands where a stager would, while there is no file to learn the columns from, and for edits."""

    def stage(self, plan: BatchPlan) -> Sequence[Report]:
        return ()

    def merge(self, plan: BatchPlan, reports: Sequence[Report], state: StateRef | None) -> StateChange:
        return StateChange(state=state)

    def cancel(self) -> None:
        pass
